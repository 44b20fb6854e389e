"""When a summary that waits for a model is asked for again: soon, less and less often, then by a person only. Pure.

Where nobody was there, the breakers know when to ask. Where somebody was there and had no answer to just this, as a
content filter has none, the next attempt will most likely cost as much and end as before: each pause is twice the one
before it, and after so many attempts there are no more. What a run has come to know stands in its details.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from compaction.summarizing.escalation import Lack

# Between any two attempts at one conversation that nobody has asked for.
PAUSE = timedelta(minutes=15)
LONGEST_PAUSE = timedelta(days=1)
# Two and a half days in all.
MOST_ATTEMPTS = 9

_WAITING = "waiting_for_a_model"
_ATTEMPTS = "attempts_without_an_answer"
_NEXT = "next_attempt_at"


def details_of(waiting: str, lack: Lack, *, before: Mapping[str, Any], started_at: datetime) -> dict[str, Any]:
    """What a run notes that has left the summary `waiting`, and perhaps others; `before` is what the last one noted.

    `next_attempt_at` is None when it is left to a person to ask for it once more.
    """
    so_far = before.get(_ATTEMPTS, 0) if before.get(_WAITING) == waiting else 0
    if lack is not Lack.UNANSWERED:
        return {_WAITING: waiting, "lack": lack.value, _ATTEMPTS: so_far}
    attempts = so_far + 1
    pause = min(LONGEST_PAUSE, PAUSE * 2 ** min(attempts - 1, 10))
    next_attempt_at = (started_at + pause).isoformat() if attempts < MOST_ATTEMPTS else None
    return {_WAITING: waiting, "lack": lack.value, _ATTEMPTS: attempts, _NEXT: next_attempt_at}


def is_rested(details: Mapping[str, Any], *, now: datetime) -> bool:
    """Whether it is time for the attempt after the one that noted these details."""
    if _NEXT not in details:
        return True
    moment = details[_NEXT]
    return moment is not None and datetime.fromisoformat(moment) <= now

"""When a summary that waits for a model is tried again. Pure.

After a model was unavailable, its circuit breaker knows when to call it. A model that answers, but not to this summary,
as with a content filter, will most likely fail again at the same cost: each pause is twice the one before, and after
so many attempts only a person retries. A run keeps this state in its details.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from compaction.summarizing.escalation import Lack

# Between any two automatic attempts at one conversation.
PAUSE = timedelta(minutes=15)
LONGEST_PAUSE = timedelta(days=1)
# Two and a half days in all.
MOST_ATTEMPTS = 9

_WAITING = "waiting_for_a_model"
_ATTEMPTS = "attempts_without_an_answer"
_NEXT = "next_attempt_at"


def details_of(waiting: str, lack: Lack, *, before: Mapping[str, Any], started_at: datetime) -> dict[str, Any]:
    """The details of a run that left the summary `waiting`; `before`, the last ones.

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

"""Which moment of a conversation is meant: after a message, at a time, or when a run was through."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from conversations.errors import Invalid
from conversations.sql import load

LONGEST = 80
_SEQ = re.compile(r"0|[1-9][0-9]{0,18}")
_RUN = re.compile(r"run_[0-9a-zA-Z]+")

_SQL = load("retrieval/assembly.sql")


@dataclass(frozen=True)
class MomentAsked:
    """A moment as a question to the database, for its last seq and its time.

    `upto`: whether what was made at exactly its time belongs to it.
    """

    statement: str
    value: Any
    upto: bool = True
    time: datetime | None = None
    run_id: str | None = None


def moment_asked(as_of: int | str | datetime, *, message_count: int) -> MomentAsked:
    """A seq, a time or a run; Invalid for what is none of these, and for a seq that there is not yet."""
    if isinstance(as_of, datetime):
        return _at_time(as_of)
    text = str(as_of)
    if isinstance(as_of, int | str) and not isinstance(as_of, bool) and len(text) <= LONGEST:
        if _SEQ.fullmatch(text):
            return _after_seq(int(text), message_count)
        if _RUN.fullmatch(text):
            return MomentAsked(_SQL["moment_of_run"], text, run_id=text)
        try:
            return _at_time(datetime.fromisoformat(text))
        except ValueError:
            pass
    raise Invalid(
        f"as_of: {text[:80]!r} is neither a seq, such as 120, nor a time in ISO 8601, such as 2026-01-31T12:00:00Z, "
        "nor the id of a run."
    )


def _after_seq(seq: int, message_count: int) -> MomentAsked:
    if seq > message_count:
        raise Invalid(f"as_of: there is no message {seq} yet; the last one is {message_count}.")
    return MomentAsked(_SQL["moment_after_seq"], seq, upto=False)


def _at_time(time: datetime) -> MomentAsked:
    if time.tzinfo is None:
        raise Invalid("as_of: the time needs its zone, such as a Z at its end.")
    return MomentAsked(_SQL["moment_at_time"], time, time=time)

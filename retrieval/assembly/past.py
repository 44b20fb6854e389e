"""Read a context as of a past moment, from messages, summaries and lineage.

A message is in the context from its `recorded_at` on. A summary is in it from its `created_at` on, and replaces its
sources or the summary that it supersedes. The current settings apply, because earlier settings are not stored.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from compaction.rendering import context_cost_of
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS, TokenEstimator
from conversations.errors import Invalid, NotFound
from conversations.models import Conversation
from conversations.sql import array, load, rows
from conversations.store.paths import WHOLE, Path, kept_summaries
from conversations.types import Counters
from retrieval.assembly.assembled_items import read_summaries
from retrieval.assembly.context_slots import ABOVE, WITHHELD, SlotPage, messages_around, page_in
from retrieval.assembly.selection import Candidate, by_ordinal
from retrieval.assembly.types import Moment

_SQL = load("retrieval/assembly.sql")
_SEQ = re.compile(r"0|[1-9][0-9]{0,18}")
_RUN = re.compile(r"run_[0-9a-zA-Z]+")


@dataclass(frozen=True)
class PastContext:
    """A past context; one SQL statement has read all of it."""

    conversation_id: int
    moment: Moment
    whole: SlotPage
    # The ranges of seqs that were not on the path to the head of that moment.
    off_path: str

    @cached_property
    def counters(self) -> Counters:
        return Counters(
            message_count=self.moment.last_seq,
            active_messages=len(self._shown),
            active_tokens=sum(slot.tokens for slot in self.whole.slots),
        )

    def page(self, *, before: int, size: int, tokens: int, margin: int) -> SlotPage:
        slots = self.whole.slots
        end = bisect_left(slots, before, key=by_ordinal)
        first, newer = end, 0
        while first > 0 and end - first < size and newer <= tokens:
            first -= 1
            newer += slots[first].tokens
        begin = max(0, end - size, first - margin)
        question = next((slot for slot in reversed(slots) if slot.is_question), None)
        return replace(
            self.whole,
            slots=slots[begin:end],
            sought=self._marked(self.whole.sought),
            before=[*(slot for slot in slots[:begin] if slot.is_system), *([question] if question else [])],
            summaries=sum(not slot.is_raw for slot in slots),
        )

    def around(self, seqs: Iterable[int]) -> list[Candidate]:
        return self._marked(messages_around(self.conversation_id, seqs, off_path=self.off_path))

    def _marked(self, messages: Iterable[Candidate]) -> list[Candidate]:
        return [each._replace(is_recalled=each.message_id not in self._shown) for each in messages]

    @cached_property
    def _shown(self) -> frozenset[int]:
        return frozenset(slot.message_id for slot in self.whole.slots if slot.message_id is not None)


def past_context(conversation: Conversation, *, as_of: int | str | datetime, sought: Sequence[int]) -> PastContext:
    """Read the context as of a seq, a time or a run.

    Raises Invalid for any other value and for a seq after the last message. Raises NotFound for a run that is not one
    of this conversation.
    """
    conversation_id = conversation.conversation_id
    kind, given = _parse(as_of, message_count=conversation.counters.message_count)
    run_id = str(given) if kind == "moment_of_run" else None
    given_time = given if isinstance(given, datetime) else None
    values: dict[str, Any] = {
        "id": conversation_id,
        "as_of": given,
        # Whether rows that were created at exactly that time are included.
        "upto": kind != "moment_after_seq",
        "sought": array(sought),
        "overhead": MESSAGE_OVERHEAD_TOKENS,
    }
    path = _path_at(conversation, kind, values) if conversation.moves else WHOLE
    values |= path.values
    # A given time is not read back from PostgreSQL, which could return a time that Python cannot represent.
    time_found = "time" if given_time is None else "NULL::timestamptz"
    statement = _SQL["past_context"].format(
        above=ABOVE, moment=_SQL[kind], time=time_found, roles_and_parts=_SQL["roles_and_parts"]
    )
    if conversation.quarantined:
        statement = f"{statement} UNION ALL SELECT withheld.*, NULL FROM ({WITHHELD}) AS withheld"
    found = rows(statement, values)
    [(last_seq, time)] = [(row[1][0], row[7]) for row in found if row[0] == "moment"]
    if time is None and run_id is not None:
        raise NotFound(f"There is no run {run_id!r} of this conversation.")
    moment = Moment(last_seq=last_seq, time=given_time or time, run_id=run_id)
    page = page_in(_priced(found))
    slots = {slot.summary_id: slot for slot in page.slots}
    standing_for = [(slots[summary.summary_id], message_id) for summary, message_id in page.standing_for]
    return PastContext(conversation_id, moment, replace(page, standing_for=standing_for), path.inactive)


def _path_at(conversation: Conversation, kind: str, values: Mapping[str, Any]) -> Path:
    """The path to the head of that moment, with the summaries that existed then."""
    statement = _SQL["path_at_moment"].format(moment=_SQL[kind])
    [(seq, time, off)] = rows(statement, {**values, "is_seq": kind == "moment_after_seq"})
    kept = kept_summaries(conversation.pk, off, before=time, upto=bool(values["upto"]), last=seq)
    return Path(off, kept)


def _priced(found: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Convert the rows to the format of `page_in`, and add missing token costs.

    The token cost of a summary that is no longer in the context is not stored, so it is computed again.
    """
    cost_of = context_cost_of(TokenEstimator.from_settings())
    priced = []
    for what, ordinals, tokens, messages, ids, last_seqs, recalled, _ in found:
        if what == "summary" and ids:
            shown = read_summaries([id for id, cost in zip(ids, tokens, strict=True) if cost is None])
            counted = {id: cost_of(each) for id, each in shown.items()}
            tokens = [counted.get(id, cost) for id, cost in zip(ids, tokens, strict=True)]
        priced.append((what, ordinals, tokens, messages, ids, last_seqs, recalled))
    return priced


def _parse(as_of: int | str | datetime, *, message_count: int) -> tuple[str, int | str | datetime]:
    """Return the name of the statement for a seq, time or run, and the parsed value."""
    text = str(as_of)
    if _SEQ.fullmatch(text):
        if int(text) > message_count:
            raise Invalid(f"as_of: there is no message {text} yet; the newest has seq {message_count}.")
        return "moment_after_seq", int(text)
    if _RUN.fullmatch(text):
        return "moment_of_run", text
    try:
        time = as_of if isinstance(as_of, datetime) else datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(
            f"as_of: {text[:80]!r} is neither a seq, such as 120, nor a time in ISO 8601, such as "
            "2026-01-31T12:00:00Z, nor the id of a run."
        ) from None
    if time.tzinfo is None:
        raise Invalid("as_of: the time needs a time zone, such as a Z at its end.")
    return "moment_at_time", time

"""The context of a conversation as it was at a past moment, from messages, summaries and lineage alone.

A message is there from when it was recorded on, a summary from when it was created on, instead of its sources or of the
summary it superseded. Settings are today's: what they were is nowhere written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from compaction.rendering import render_dearest
from conversations.content.tokens import TokenEstimator
from conversations.errors import NotFound
from conversations.models import Conversation
from conversations.sql import array, load, rows
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS
from conversations.types import Counters
from retrieval.assembly.candidates import Candidate
from retrieval.assembly.context_slots import Look, Sought, by_ordinal, look_in
from retrieval.assembly.moments import moment_asked
from retrieval.assembly.shown_summaries import shown_summary
from retrieval.assembly.types import Moment

_SQL = load("retrieval/assembly.sql")


@dataclass(frozen=True)
class PastContext:
    """A context as it was: all there is to know of it, read at once."""

    conversation_id: int
    moment: Moment
    whole: Look

    @cached_property
    def counters(self) -> Counters:
        return Counters(
            message_count=self.moment.last_seq,
            active_messages=len(self._shown),
            active_tokens=sum(slot.tokens for slot in self.whole.slots),
        )

    def look(self, *, before: int, size: int, tokens: int, margin: int, is_all: bool) -> Look:
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

    def around(self, windows: Iterable[tuple[int, int]]) -> list[Candidate]:
        firsts, lasts = zip(*windows, strict=True)
        values: dict[str, Any] = {"id": self.conversation_id, "firsts": array(firsts), "lasts": array(lasts)}
        values["overhead"] = MESSAGE_OVERHEAD_TOKENS
        return self._marked(look_in(rows(_SQL["past_messages_between"], values)).near)

    def _marked(self, messages: Iterable[Candidate]) -> list[Candidate]:
        return [each._replace(is_recalled=each.message_id not in self._shown) for each in messages]

    @cached_property
    def _shown(self) -> frozenset[int]:
        return frozenset(slot.message_id for slot in self.whole.slots if slot.message_id is not None)


def past_context(
    conversation: Conversation, *, as_of: int | str | datetime, sought: Sequence[Sought] = ()
) -> PastContext:
    """The context as of a seq, a time or a run.

    Raises Invalid for what is none of these and for a seq that there is not yet, NotFound for a run of another
    conversation or of none.
    """
    conversation_id = conversation.conversation_id
    asked = moment_asked(as_of, message_count=conversation.counters.message_count)
    values = {
        "id": conversation_id,
        "as_of": asked.value,
        "upto": asked.upto,
        "sought": array(each.message_id for each in sought),
        "overhead": MESSAGE_OVERHEAD_TOKENS,
    }
    # A time that was given is not read back: there are some that the database knows and Python does not.
    time_found = "time" if asked.time is None else "NULL::timestamptz"
    statement = _SQL["past_context"].format(moment=asked.statement, time=time_found)
    if conversation.quarantined:
        withheld = _SQL["withheld"]
        statement = f"{statement} UNION ALL SELECT withheld.*, NULL, NULL, NULL FROM ({withheld}) AS withheld"
    found = rows(statement, values)
    [(last_seq, time)] = [(row[1][0], row[7]) for row in found if row[0] == "moment"]
    if time is None and asked.run_id is not None:
        raise NotFound(f"There is no run {asked.run_id!r} of this conversation.")
    moment = Moment(last_seq=last_seq, time=asked.time or time, run_id=asked.run_id)
    look = look_in(_priced(found))
    slots = {slot.summary_id: slot for slot in look.slots}
    standing_for = [(slots[summary.summary_id], message_id) for summary, message_id in look.standing_for]
    return PastContext(conversation_id, moment, replace(look, standing_for=standing_for))


def _priced(found: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows as `look_in` reads them, the summaries' with what each costs.

    One that is in the context no longer has to be counted again.
    """
    count = TokenEstimator.from_settings().count

    def cost(tokens: int | None, *shown: str) -> int:
        return count(render_dearest(shown_summary(*shown))) + MESSAGE_OVERHEAD_TOKENS if tokens is None else tokens

    priced = []
    for row in found:
        what, ordinals, tokens, messages, ids, last_seqs, recalled, _, contents, figures = row
        if contents is not None:
            tokens = list(map(cost, tokens, ids, contents, figures))
        priced.append((what, ordinals, tokens, messages, ids, last_seqs, recalled))
    return priced

"""The context of a conversation as it was at a past moment, from messages, summaries and lineage alone.

A message is there from when it was recorded on, a summary from when it was created on, instead of its sources or of the
summary it superseded. Settings are today's: what they were is nowhere written.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from compaction.rendering import render_dearest
from conversations.errors import Invalid, NotFound
from conversations.reading import array, rows
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS
from conversations.tokens import TokenEstimator
from conversations.types import Counters, Role
from retrieval.assembly.candidates import Candidate
from retrieval.assembly.context_slots import candidates
from retrieval.assembly.selection_items import read_summary_records
from retrieval.assembly.types import Moment
from retrieval.lineage_steps import above_messages

LONGEST = 80
_SEQ = re.compile(r"0|[1-9][0-9]{0,18}")
_RUN = re.compile(r"run_[0-9a-zA-Z]+")
# Of what came before a window, so many at a time are looked through for the newest question.
_STRIDE = 64

# The last moment at which this message was the newest: whatever was compacted before the next one came belongs to it.
_AFTER_SEQ = """
    SELECT min(m.recorded_at) FROM messages m WHERE m.conversation_id = %(id)s AND m.seq = %(seq)s + 1
"""
# Whose clock goes back records a message before an earlier one: the seqs decide.
_AT_TIME = """
    SELECT coalesce((
        SELECT m.seq FROM messages m WHERE m.conversation_id = %(id)s AND m.recorded_at <= %(time)s
        ORDER BY m.seq DESC LIMIT 1
    ), 0)
"""
# A run ends with its last summary; one that made none, when its record says so.
_OF_RUN = """
    SELECT coalesce(
        (SELECT max(s.created_at) FROM summaries s WHERE s.conversation_id = %(id)s AND s.run_id = %(run)s),
        (SELECT coalesce(r.finished_at, r.started_at) FROM compaction_runs r
         WHERE r.conversation_id = %(id)s AND r.run_id = %(run)s)
    )
"""
# The summaries that there were, and of these, and of the messages, what nothing of them stood for yet. One that reaches
# farther than the context did cannot have been there, whatever the clock says.
_CONTEXT = """
    WITH there AS MATERIALIZED (
        SELECT s.summary_id, s.first_seq, s.last_seq, s.supersedes_id
        FROM summaries s
        WHERE s.conversation_id = %(id)s AND s.last_seq <= %(seq)s
          AND (%(time)s::timestamptz IS NULL OR s.created_at < %(time)s OR (%(upto)s AND s.created_at = %(time)s))
    )
    SELECT t.first_seq, c.token_count, NULL::bigint, t.summary_id, t.last_seq, NULL
    FROM there t LEFT JOIN context_items c ON c.summary_id = t.summary_id
    WHERE NOT EXISTS (
        SELECT FROM summary_parents p JOIN there d ON d.summary_id = p.summary_id
        WHERE p.parent_summary_id = t.summary_id
      ) AND NOT EXISTS (SELECT FROM there later WHERE later.supersedes_id = t.summary_id)
    UNION ALL
    SELECT m.seq, m.token_count + %(overhead)s, m.message_id, NULL, m.seq, m.role::text
    FROM messages m
    LEFT JOIN (
        SELECT DISTINCT l.message_id FROM there t JOIN summary_messages l ON l.summary_id = t.summary_id
    ) AS covered ON covered.message_id = m.message_id
    WHERE m.conversation_id = %(id)s AND m.seq <= %(seq)s AND covered.message_id IS NULL
    ORDER BY 1
"""
# To the summary that stood for a message then.
_STANDING_FOR = f"""
    {above_messages("%s")}
    SELECT summary_id, message_id FROM above WHERE summary_id = ANY(%s)
"""


@dataclass(frozen=True)
class _Asked:
    """A moment, and whether what was made at exactly its time belongs to it."""

    moment: Moment
    upto: bool


@dataclass(frozen=True)
class PastContext:
    """A context as it was: all of its slots, read at once."""

    conversation_id: int
    moment: Moment
    # Ordinal, tokens, message, summary, last seq, role: as the window has them, and the role of a message.
    slots: Sequence[tuple[Any, ...]]

    @cached_property
    def counters(self) -> Counters:
        return Counters(
            message_count=self.moment.last_seq,
            active_messages=sum(slot[2] is not None for slot in self.slots),
            active_tokens=sum(slot[1] for slot in self.slots),
        )

    def page(self, *, before: int, size: int, tokens: int, margin: int) -> list[Candidate]:
        end = self._place(before)
        first, newer = end, 0
        while first > 0 and end - first < size and newer <= tokens:
            first -= 1
            newer += self.slots[first][1]
        return _candidates(self.slots[max(0, end - size, first - margin) : end])

    def system_before(self, ordinal: int) -> list[Candidate]:
        return _candidates([slot for slot in self.slots[: self._place(ordinal)] if slot[5] == Role.SYSTEM])

    def question_before(self, ordinal: int) -> list[Candidate]:
        said = [slot for slot in self.slots[: self._place(ordinal)] if slot[5] == Role.USER]
        for end in range(len(said), 0, -_STRIDE):
            questions = [slot for slot in _candidates(said[max(0, end - _STRIDE) : end]) if slot.is_question]
            if questions:
                return questions[-1:]
        return []

    def count_summaries(self) -> int:
        return len(self._summary_ids)

    def summaries(self, summary_ids: Iterable[str]) -> list[Candidate]:
        wanted = set(summary_ids)
        return _candidates([slot for slot in self.slots if slot[3] in wanted])

    def shown_raw(self, message_ids: Iterable[int]) -> Collection[int]:
        return {slot[2] for slot in self.slots if slot[2] is not None}.intersection(message_ids)

    def standing_for(self, message_ids: Iterable[int]) -> list[tuple[str, int]]:
        found = rows(_STANDING_FOR, [array(message_ids), list(self._summary_ids)])
        return [(summary_id, message_id) for summary_id, message_id in found]

    @cached_property
    def _summary_ids(self) -> frozenset[str]:
        return frozenset(slot[3] for slot in self.slots if slot[3] is not None)

    def _place(self, ordinal: int) -> int:
        return bisect_left(self.slots, ordinal, key=lambda slot: slot[0])


def past_context(*, conversation_id: int, as_of: int | str | datetime, message_count: int) -> PastContext:
    """The context as of a seq, a time or a run.

    Raises Invalid for what is none of these and for a seq that there is not yet, NotFound for a run of another
    conversation or of none.
    """
    asked = _asked(conversation_id, as_of, message_count)
    values = {
        "id": conversation_id,
        "seq": asked.moment.last_seq,
        "time": asked.moment.time,
        "upto": asked.upto,
        "overhead": MESSAGE_OVERHEAD_TOKENS,
    }
    return PastContext(conversation_id=conversation_id, moment=asked.moment, slots=_priced(rows(_CONTEXT, values)))


def _asked(conversation_id: int, as_of: int | str | datetime, message_count: int) -> _Asked:
    if isinstance(as_of, datetime):
        return _at_time(conversation_id, as_of)
    text = str(as_of)
    if isinstance(as_of, int | str) and not isinstance(as_of, bool) and len(text) <= LONGEST:
        if _SEQ.fullmatch(text):
            return _after_seq(conversation_id, int(text), message_count)
        if _RUN.fullmatch(text):
            return _of_run(conversation_id, text)
        try:
            return _at_time(conversation_id, datetime.fromisoformat(text))
        except ValueError:
            pass
    raise Invalid(
        f"as_of: {text[:80]!r} is neither a seq, such as 120, nor a time in ISO 8601, such as 2026-01-31T12:00:00Z, "
        "nor the id of a run."
    )


def _after_seq(conversation_id: int, seq: int, message_count: int) -> _Asked:
    if seq > message_count:
        raise Invalid(f"as_of: there is no message {seq} yet; the last one is {message_count}.")
    [[until]] = rows(_AFTER_SEQ, {"id": conversation_id, "seq": seq})
    return _Asked(Moment(last_seq=seq, time=until), upto=False)


def _at_time(conversation_id: int, time: datetime, run_id: str | None = None) -> _Asked:
    if time.tzinfo is None:
        raise Invalid("as_of: the time needs its zone, such as a Z at its end.")
    [[seq]] = rows(_AT_TIME, {"id": conversation_id, "time": time})
    return _Asked(Moment(last_seq=seq, time=time, run_id=run_id), upto=True)


def _of_run(conversation_id: int, run_id: str) -> _Asked:
    [[time]] = rows(_OF_RUN, {"id": conversation_id, "run": run_id})
    if time is None:
        raise NotFound(f"There is no run {run_id!r} of this conversation.")
    return _at_time(conversation_id, time, run_id)


def _priced(slots: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The slots, each summary with what it costs: one that is in the context no longer has to be counted again."""
    unknown = [slot[3] for slot in slots if slot[1] is None]
    if not unknown:
        return slots
    count = TokenEstimator.from_settings().count
    costs = {
        summary_id: count(render_dearest(summary)) + MESSAGE_OVERHEAD_TOKENS
        for summary_id, summary in read_summary_records(unknown).items()
    }
    return [slot if slot[1] is not None else (slot[0], costs[slot[3]], *slot[2:]) for slot in slots]


def _candidates(slots: Sequence[tuple[Any, ...]]) -> list[Candidate]:
    return candidates([slot[:5] for slot in slots])

"""Read a context in pages, newest first, until the budget cannot hold more.

`StoredContext` reads the current context, with one SQL statement a page. `past.py` reads that of an earlier moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from compaction.planning.planner import MAX_ATOM_MESSAGES, TAIL_REACH, sum_tokens
from compaction.policy import CompactionPolicy
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.models import Conversation
from conversations.sql import array, load, rows
from conversations.store.read import ROLES
from conversations.types import Counters, Role
from retrieval.assembly.selection import (
    LINES_LEFT_OUT,
    Candidate,
    Group,
    by_ordinal,
    edge_of,
    groups_of,
    inside,
    is_enough,
)
from retrieval.assembly.types import AssemblyReason, LeftOut, Moment

# The first page usually suffices. If the sizes of the items are very uneven, each further page doubles the slots read.
SPARE = 1.5
SMALLEST_PAGE = 64
LARGEST_TYPICAL_ITEM = 500
END = 2**63 - 1

_SQL = load("retrieval/assembly.sql")
WITHHELD = _SQL["withheld"].format(withheld_items=load("compaction/quarantines.sql")["withheld_items"])
ABOVE = load("retrieval/search/matches.sql")["above"]
_STORED = _SQL["stored_context"].format(above=ABOVE, roles_and_parts=_SQL["roles_and_parts"])
_NOTHING: Sequence[Sequence[Any]] = ((),) * 6


@dataclass(frozen=True)
class SlotPage:
    """A page of slots in order, with other rows that the same statement read."""

    slots: list[Candidate]
    # System messages before these slots, and the newest question of the whole context.
    before: list[Candidate]
    # The hits of the query, and the summaries that replace hits in the context, each with the id of the hit.
    sought: list[Candidate]
    standing_for: list[tuple[Candidate, int]]
    near: list[Candidate]
    withheld: frozenset[str]
    summaries: int


class ContextSlots(Protocol):
    """A context that can be read in pages, newest first."""

    @property
    def counters(self) -> Counters: ...

    @property
    def moment(self) -> Moment | None:
        """The moment of a past context; None for the current context."""

    def page(self, *, before: int, size: int, tokens: int, margin: int) -> SlotPage:
        """Read up to `size` slots before an ordinal: `tokens`, and `margin` more slots."""

    def around(self, seqs: Iterable[int]) -> list[Candidate]:
        """Read messages near these seqs; `is_recalled` marks those not in the context."""


@dataclass(frozen=True)
class StoredContext:
    """The current context; `sought` are the message ids of a query's hits."""

    # The row was read in the same snapshot as the slots.
    conversation: Conversation
    sought: Sequence[int]
    moment: None = None

    @property
    def counters(self) -> Counters:
        return self.conversation.counters

    def page(self, *, before: int, size: int, tokens: int, margin: int) -> SlotPage:
        values = {
            "id": self.conversation.conversation_id,
            "before": before,
            "size": size,
            "tokens": tokens,
            "margin": margin,
            "sought": array(self.sought),
            "overhead": MESSAGE_OVERHEAD_TOKENS,
            "has_summaries": self.counters.active_messages < self.counters.message_count,
        }
        statement = f"{_STORED} UNION ALL {WITHHELD}" if self.conversation.quarantined else _STORED
        return page_in(rows(statement, values))

    def around(self, seqs: Iterable[int]) -> list[Candidate]:
        return messages_around(self.conversation.conversation_id, seqs, off_path=self.conversation.off_path)


def messages_around(conversation_id: int, seqs: Iterable[int], *, off_path: str) -> list[Candidate]:
    """Read the messages that may be in one group with the messages at these seqs."""
    values = {
        "off": off_path,
        "id": conversation_id,
        "seqs": array(seqs),
        "reach": MAX_ATOM_MESSAGES,
        "overhead": MESSAGE_OVERHEAD_TOKENS,
    }
    return page_in(rows(f"{_SQL['messages_around']} UNION ALL {_SQL['roles_and_parts']}", values)).near


def withheld_ids(conversation: Conversation) -> frozenset[str]:
    """The ids of quarantined items, and of the summaries made from them."""
    if not conversation.quarantined:
        return frozenset()
    return page_in(rows(WITHHELD, {"id": conversation.conversation_id})).withheld


def page_in(found: Iterable[Sequence[Any]]) -> SlotPage:
    """Build a page from rows of seven columns, one row for each kind of content."""
    # array_agg returns NULL if there are no rows.
    rows = {what: [column or () for column in columns] for what, *columns in found}
    columns_of = defaultdict(lambda: _NOTHING, rows)
    _, _, named, roles_named, _, _ = columns_of["role"]
    roles = {message_id: ROLES[role] for message_id, role in zip(named, roles_named, strict=True)}
    _, _, tools, call_ids, words, _ = columns_of["parts"]
    calls: dict[int, tuple[str, ...]] = {}
    for message_id, call_id in zip(tools, call_ids, strict=True):
        if call_id is not None:
            calls[message_id] = (*calls.get(message_id, ()), call_id)
    answers = {message_id for message_id in set(tools).difference(words) if roles[message_id] is Role.USER}

    def messages(what: str) -> list[Candidate]:
        ordinals, tokens, ids, _, _, recalled = columns_of[what]
        return [
            Candidate(ordinal, cost, id, None, roles[id], calls.get(id, ()), id in answers, ordinal, is_recalled)
            for ordinal, cost, id, is_recalled in zip(
                ordinals, tokens, ids, recalled or [False] * len(ids), strict=True
            )
        ]

    def summaries(what: str) -> list[Candidate]:
        ordinals, tokens, _, ids, last_seqs, _ = columns_of[what]
        return [
            Candidate(ordinal, cost, None, id, None, (), False, last_seq, False)
            for ordinal, cost, id, last_seq in zip(ordinals, tokens, ids, last_seqs, strict=True)
        ]

    return SlotPage(
        slots=sorted(messages("raw") + summaries("summary"), key=by_ordinal),
        before=messages("before"),
        sought=messages("sought"),
        standing_for=list(zip(summaries("above"), columns_of["above"][2], strict=True)),
        near=sorted(messages("near"), key=by_ordinal),
        withheld=frozenset(columns_of["withheld"][3]),
        summaries=sum(columns_of["summaries"][0]),
    )


@dataclass(frozen=True)
class Window:
    """The newest groups of a context: from the ordinal `edge` on, or all if None."""

    groups: Sequence[Group]
    begins: int
    # The newest page, which also has counts of the whole context.
    newest: SlotPage
    edge: int | None = None

    def totals(self, counters: Counters) -> LeftOut:
        """The totals of the whole context, also if only a part of it was read."""
        if self.edge is not None:
            return LeftOut(counters.active_messages, self.newest.summaries, counters.active_tokens)
        return LeftOut(
            messages=sum(len(group.candidates) for group in self.groups if not group.is_summary),
            summaries=sum(group.is_summary for group in self.groups),
            tokens=sum(group.tokens for group in self.groups),
        )


def read_window(context: ContextSlots, *, budget: int, policy: CompactionPolicy) -> Window:
    """Read the newest groups of a context, at least as many as the budget can hold.

    A context within the budget is read completely. Mandatory groups are included at every position.
    """
    counters = context.counters
    # Slots to read beyond the budget, to see which groups are complete, and to list items that do not fit.
    behind = min(TAIL_REACH * policy.fresh_tail_count + MAX_ATOM_MESSAGES, counters.active_messages)
    margin = max(behind, LINES_LEFT_OUT)
    fits = counters.active_tokens <= budget
    typical = counters.active_tokens // max(1, counters.active_messages)
    expected = int(SPARE * budget / max(1, min(LARGEST_TYPICAL_ITEM, typical)))
    size = END if fits else max(SMALLEST_PAGE, expected + margin)
    newest = page = context.page(before=END, size=size, tokens=budget, margin=margin)
    slots = page.slots
    groups = groups_of(slots, policy)
    while slots and not fits:
        if (
            sum([slot.message_id is not None for slot in slots]) == counters.active_messages
            and sum_tokens(slots) > budget
        ):
            # All older slots are summaries, and each summary is a group of its own, so no group is incomplete.
            return Window(groups, begins=1, newest=newest, edge=slots[0].ordinal)
        edge = edge_of(groups)
        if edge is not None and is_enough(groups, edge=edge, budget=budget, policy=policy):
            farther = _mandatory_before(page, slots)
            return Window([*farther, *inside(groups, edge)], begins=1, newest=newest, edge=edge)
        page = context.page(before=slots[0].ordinal, size=len(slots), tokens=END, margin=0)
        if not page.slots:
            break
        slots = page.slots + slots
        groups = groups_of(slots, policy)
    return Window(groups, begins=slots[0].ordinal if slots else 1, newest=newest)


def _mandatory_before(page: SlotPage, slots: Sequence[Candidate]) -> list[Group]:
    """The mandatory groups before these slots: system messages, the newest question."""
    before = sorted(
        [slot for slot in page.before if slot.ordinal < slots[0].ordinal],
        key=lambda slot: (not slot.is_system, slot.ordinal),
    )
    return [Group((slot,), AssemblyReason.SYSTEM if slot.is_system else AssemblyReason.PINNED) for slot in before]

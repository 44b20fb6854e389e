"""The slots of a context, and the pages in which they are read.

`stored_context` reads the present context, `past` that of an earlier moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from compaction.planning.planner import MAX_ATOM_MESSAGES
from conversations.store.read import ROLES
from conversations.types import Counters, Role
from retrieval.assembly.candidates import Candidate
from retrieval.assembly.types import Moment

by_ordinal = attrgetter("ordinal")

# For how many of the messages that answer a query, and call a tool or answer a call, the rest of that exchange is
# looked up. None has more messages than this, so nothing of it can lie farther away.
EXCHANGES = 12
REACH = MAX_ATOM_MESSAGES


class Sought(NamedTuple):
    """A message that a query found; `beside` is the better hit next to it."""

    message_id: int
    beside: int


@dataclass(frozen=True)
class SlotPage:
    """Slots of a context in order, with what was read of the whole context."""

    slots: list[Candidate]
    # System messages before these slots, and the newest question of the whole context.
    before: list[Candidate] = field(default_factory=list)
    # The messages that were sought, and the summaries of the context that stand for them, each with the message.
    sought: list[Candidate] = field(default_factory=list)
    standing_for: list[tuple[Candidate, int]] = field(default_factory=list)
    # All that is around some of them, the places of which were `looked_around`.
    near: list[Candidate] = field(default_factory=list)
    looked_around: frozenset[int] = frozenset()
    withheld: frozenset[str] = frozenset()
    summaries: int = 0


class ContextSlots(Protocol):
    """A context that can be read from its newest end."""

    @property
    def counters(self) -> Counters: ...

    @property
    def moment(self) -> Moment | None:
        """Whose context it is; None for the present."""

    def page(self, *, before: int, size: int, tokens: int, margin: int, is_all: bool) -> SlotPage:
        """At most `size` slots, the newest before an ordinal: those that the tokens reach, and a margin behind them.

        Where these are all there is, nothing is asked of what comes before them.
        """

    def around(self, windows: Iterable[tuple[int, int]]) -> list[Candidate]:
        """The messages between these seqs, in order, those marked that the context does not show itself."""


_NOTHING: Sequence[Sequence[Any]] = ((),) * 6


def page_in(found: Iterable[Sequence[Any]]) -> SlotPage:
    """The page in these rows of seven columns."""
    # Of nothing, the server makes no array.
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
        looked_around=frozenset(columns_of["around"][0]),
        withheld=frozenset(columns_of["withheld"][3]),
        summaries=sum(columns_of["summaries"][0]),
    )

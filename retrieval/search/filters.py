"""Build the WHERE clauses of a search: what the scope allows, and what the criteria ask for.

Every criterion is a condition of the search itself, so that a limit counts only what meets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from conversations.scope import Scope
from conversations.sql import array, bigint, load, rows, texts
from retrieval.search.criteria import Criteria
from retrieval.search.query.compiled_query import CompiledQuery
from retrieval.search.searchables import FILES, MESSAGES, SEARCHABLES, SUMMARIES, Searchable
from retrieval.types import ItemKind

_SQL = load("retrieval/search_filters.sql")
_MESSAGES_OF_RARE_TOOLS = load("retrieval/search_prepare.sql")["messages_of_rare_tools"]
IN_WORKSPACE = "conversation_id IN (SELECT conversation_id FROM conversations WHERE workspace_id = %(workspace_id)s)"
# So many messages have one place lexeme, as `lcm_places` says; more blocks than these are a whole conversation.
BLOCK, _MOST_BLOCKS = 1024, 40
# The messages of tools that were called so rarely are found by their calls; of others, among those that match.
MOST_CALLS = 300


@dataclass(frozen=True)
class Filters:
    """The rows to search. `low` (exclusive) and `high` are places of messages: seqs of one conversation, else ids.

    `size`: how many messages there are before any criterion. `at`: a moment, if nothing that came later counts.
    """

    scope: Scope
    criteria: Criteria
    size: int
    low: int
    high: int
    # The newest place there is, whatever the criteria are.
    newest: int
    below: tuple[str, ...] = ()
    at: datetime | None = None
    # Of the messages of these conversations, so many are cold.
    cold: int = 0
    # All messages that have to do with the tools of the criteria, if these were called rarely.
    of_tools: tuple[int, ...] | None = None
    # Kinds that these conversations have nothing of.
    missing: frozenset[ItemKind] = frozenset()

    def as_it_was(self, *, newest: int, size: int, at: datetime) -> Filters:
        """The same without what came later."""
        high = min(self.high, newest)
        return replace(self, low=min(self.low, high), high=high, newest=newest, size=size, at=at)

    def without(self, table: Searchable) -> Filters:
        """The same without the rows of this table."""
        return replace(self, missing=self.missing | {table.kind})

    @property
    def is_one_conversation(self) -> bool:
        return self.criteria.conversation_id is not None

    @cached_property
    def tables(self) -> tuple[Searchable, ...]:
        """The tables to search; one at least."""
        wanted = tuple(table for table in SEARCHABLES if table.kind in self.criteria.kinds)
        return tuple(table for table in wanted if table.kind not in self.missing) or wanted[:1]

    @property
    def rows(self) -> int:
        """Among how many messages the search looks, before criteria pick some of them."""
        return self.high - self.low if self.is_one_conversation else self.size

    @property
    def picks_among_messages(self) -> bool:
        """Whether only some of the messages between `low` and `high` are searched."""
        return self.criteria.picks_among_messages

    @property
    def is_narrowed(self) -> bool:
        """Whether a message beside a match may be excluded."""
        return self.picks_among_messages or self.low > 0 or self.high < self.newest or self.at is not None

    def place(self, table: Searchable) -> str:
        return table.place_in_one if self.is_one_conversation else table.place_in_many

    def matching(self, table: Searchable, query: CompiledQuery, *, places: str = "in_conversations") -> str:
        """The condition that the word index leads by to the rows that match the query.

        `places`: the name of the parameter with the place lexemes to search. Words and places are conditions of their
        own: of one for both, the index would go through all entries of these places.
        """
        names = [*query.conditions, *([places] if table.has_places and self.criteria.named else [])]
        return " AND ".join(f"{table.vector} @@ %({name})s::tsquery" for name in names)

    def blocks(self, after: int, upto: int) -> str:
        """The place lexemes of the blocks of one conversation that hold the seqs behind one and up to another."""
        blocks = range((after + 1) // BLOCK, upto // BLOCK + 1)
        if not self.is_one_conversation or len(blocks) > _MOST_BLOCKS:
            return self._in_conversations
        return " | ".join(f"'in {self.criteria.conversation_id}/{block}'" for block in blocks)

    @property
    def _in_conversations(self) -> str:
        return " | ".join(f"'in {each}'" for each in self.criteria.named)

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """The parameters of all conditions."""
        criteria = self.criteria
        return {
            "workspace_id": self.scope.workspace_id,
            "conversation_id": None if criteria.conversation_id is None else bigint(criteria.conversation_id),
            "conversation_ids": array(criteria.conversation_ids),
            "in_conversations": self._in_conversations,
            "since": criteria.since,
            "until": criteria.until,
            "roles": texts(criteria.roles),
            "part_types": texts(criteria.part_types),
            "tool_names": texts(criteria.tool_names),
            "of_tools": array(self.of_tools or ()),
            "low": bigint(self.low),
            "high": bigint(self.high),
            "depth": criteria.depth,
            "below": texts(self.below),
            "holding": texts([criteria.under, *self.below] if criteria.under else []),
            "at": self.at,
        }

    def where(self, table: Searchable, *, by_words: bool = True, costly: bool = True) -> str:
        """The condition for the table's rows. `costly`: with what takes long to find out (`costly_of`).

        `by_words`: the word index leads to them, so that no other index serves these conditions.
        """
        owned = self._owned
        if by_words and owned != "true" and (table.has_places or not self.is_one_conversation):
            # As it is written, no index serves it.
            owned = f"({owned}) IS TRUE"
        conditions = [owned, table.only if self.at is None else table.only_then]
        conditions += {MESSAGES: self._of_messages, SUMMARIES: self._of_summaries, FILES: self._of_files}[table]()
        return _all_of([*conditions, *([self.costly_of(table)] if costly else [])])

    def costly_of(self, table: Searchable) -> str:
        """The conditions on the parts of messages."""
        criteria = self.criteria
        if table is not MESSAGES:
            return "true"
        has_tool = [_SQL["of_tool"]] if criteria.tool_names and self.of_tools is None else []
        return _all_of([*([_SQL["has_part"]] if criteria.part_types else []), *has_tool])

    @property
    def _owned(self) -> str:
        if self.is_one_conversation:
            return "conversation_id = %(conversation_id)s"
        if self.criteria.conversation_ids:
            return "conversation_id = ANY(%(conversation_ids)s::bigint[])"
        return "true" if self.scope.workspace_id is None else IN_WORKSPACE

    def _of_messages(self) -> list[str]:
        criteria = self.criteria
        place = self.place(MESSAGES)
        return [
            *([f"{place} > %(low)s"] if self.low > 0 else []),
            *([f"{place} <= %(high)s"] if self.high < self.newest or self.at is not None else []),
            *(["created_at >= %(since)s"] if criteria.since else []),
            *(["created_at < %(until)s"] if criteria.until else []),
            *(["role = ANY(%(roles)s::text[]::message_role[])"] if criteria.roles else []),
            *(["message_id = ANY(%(of_tools)s::bigint[])"] if self.of_tools is not None else []),
            *([_SQL["held_below"]] if criteria.under else []),
        ]

    def _of_summaries(self) -> list[str]:
        """A summary covers a range, and is of every place and moment in it."""
        criteria = self.criteria
        return [
            *(["last_seq > %(low)s"] if criteria.from_seq else []),
            *(["first_seq <= %(high)s"] if criteria.to_seq is not None else []),
            *(["latest_at >= %(since)s"] if criteria.since else []),
            *(["earliest_at < %(until)s"] if criteria.until else []),
            *(["depth = %(depth)s"] if criteria.depth is not None else []),
            *(["summary_id = ANY(%(below)s::text[])"] if criteria.under else []),
        ]

    def _of_files(self) -> list[str]:
        criteria = self.criteria
        return [
            *(["created_at >= %(since)s"] if criteria.since else []),
            *(["created_at < %(until)s"] if criteria.until else []),
        ]


def messages_of_rare_tools(tool_names: Sequence[str], conversation_id: int | None) -> tuple[int, ...] | None:
    """All messages that have to do with these tools; None if they were called too often.

    Of other conversations than the one that is named there may be some among them.
    """
    values = {"tool_names": list(tool_names), "conversation_id": conversation_id, "most": MOST_CALLS}
    [(calls, found)] = rows(_MESSAGES_OF_RARE_TOOLS, values)
    return tuple(found) if calls < MOST_CALLS else None


def _all_of(conditions: Iterable[str]) -> str:
    return " AND ".join(each for each in conditions if each != "true") or "true"

"""How far a search reaches: the rows that the scope allows and the criteria ask for, as conditions of SQL.

Everything is a condition of the search itself, so that a limit counts only what was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from conversations.scope import Scope
from conversations.sql import array, bigint, texts
from retrieval.search.criteria import Criteria
from retrieval.search.query.compiled_query import Plan
from retrieval.search.searchables import FILES, MESSAGES, SUMMARIES, TABLES, Table
from retrieval.search.tools import OF_RARE_TOOL, OF_TOOL
from retrieval.types import ItemKind

IN_WORKSPACE = "conversation_id IN (SELECT conversation_id FROM conversations WHERE workspace_id = %(workspace_id)s)"
# Where a message stands, as `lcm_places` calls it: of so many blocks it is sooner told by the whole conversation.
_BLOCK, _MOST_BLOCKS = 1024, 40
# Asked of each message that has the words: without the offset, PostgreSQL may join all parts there are first.
_HAS_PART = """EXISTS (
    SELECT FROM message_parts part
    WHERE part.message_id = messages.message_id AND part.part_type = ANY(%(part_types)s::text[]::message_part_type[])
    OFFSET 0
)"""
_HELD_BELOW = """EXISTS (
    SELECT FROM summary_messages held
    WHERE held.message_id = messages.message_id AND held.summary_id = ANY(%(holding)s::text[])
)"""


@dataclass(frozen=True)
class Reach:
    """The rows to search. `low` (exclusive) and `high` are places of messages: seqs of one conversation, else ids.

    `size`: how many messages there are where the search looks, before any criterion. `at`: a moment, if nothing that
    came later is to be seen.
    """

    scope: Scope
    criteria: Criteria
    size: int
    low: int
    high: int
    below: tuple[str, ...] = ()
    at: datetime | None = None
    # The newest place there is, whatever was asked for.
    newest: int = field(default=0)
    # Of the messages of these conversations, so many are cold.
    cold: int = 0
    # All messages that have to do with the tools that are asked for, if they are few enough to be told one by one.
    of_tools: tuple[int, ...] | None = None
    # What there is nothing of at all.
    missing: frozenset[ItemKind] = frozenset()

    def as_it_was(self, *, newest: int, size: int, at: datetime) -> Reach:
        """The same without what came later."""
        high = min(self.high, newest)
        return replace(self, low=min(self.low, high), high=high, newest=newest, size=size, at=at)

    def without(self, table: Table) -> Reach:
        """The same without the rows of this table."""
        return replace(self, missing=self.missing | {table.kind})

    @property
    def is_one_conversation(self) -> bool:
        return self.criteria.conversation_id is not None

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Those to look in; one at least."""
        asked = tuple(table for table in TABLES if table.kind in self.criteria.kinds)
        return tuple(table for table in asked if table.kind not in self.missing) or asked[:1]

    @property
    def rows(self) -> int:
        """Among how many messages the search looks; of those that are picked, all they are picked from."""
        return self.high - self.low if self.is_one_conversation else self.size

    @property
    def picks_among_messages(self) -> bool:
        """Whether only some of the messages between `low` and `high` are looked at."""
        return self.criteria.picks_among_messages

    @property
    def is_narrowed(self) -> bool:
        """Whether a message beside one within reach may be beyond it."""
        return self.picks_among_messages or not self._is_whole

    @property
    def _is_whole(self) -> bool:
        """Whether no message is beyond reach for where it stands, or for when it came."""
        return self.low <= 0 and self.high >= self.newest and self.at is None

    @property
    def is_all_said_in_one_conversation(self) -> bool:
        """Whether it is the messages of one conversation, every one of them; its summaries may be there, too."""
        is_said = self.tables in ((MESSAGES,), (MESSAGES, SUMMARIES))
        return self.is_one_conversation and is_said and not self.is_narrowed

    @property
    def is_all_of_one_conversation(self) -> bool:
        """Whether it is one conversation, from its first message to its last; criteria may pick among these."""
        return self.is_one_conversation and self._is_whole

    def place(self, table: Table) -> str:
        return table.place_in_one if self.is_one_conversation else table.place_in_many

    def sought(self, table: Table, how: Plan, *, among: str | None = None) -> str:
        """The condition for rows that an index finds, among which are all that answer the plan's query.

        `among`: the name of a value by which the index for words tells where rows stand (`in_conversation`, or that of
        `between`), if it is to be asked for that, too.
        """
        # In one query, the index would pass through all that stands there, and ask of each whether it has the words. Of
        # several, each passes by what the others have not.
        names = [*how.asked, among] if among is not None and table.knows_place else how.asked
        return " AND ".join(f"{table.vector} @@ %({name})s::tsquery" for name in names)

    def answering(self, table: Table, how: Plan, *, among: str | None = None) -> str:
        """The condition for those that do."""
        sought = self.sought(table, how, among=among)
        # As it is written, no index serves the second.
        return sought if how.asks_for_all else f"{sought} AND ({table.vector} @@ %(query)s::tsquery) IS TRUE"

    def between(self, after: int, upto: int) -> str:
        """The tsquery for messages of one conversation behind one place and up to another, and for some before them."""
        blocks = range((after + 1) // _BLOCK, upto // _BLOCK + 1)
        if len(blocks) > _MOST_BLOCKS:
            return self._in_conversation
        return " | ".join(f"'in {self.criteria.conversation_id}/{block}'" for block in blocks)

    @property
    def _in_conversation(self) -> str:
        return f"'in {self.criteria.conversation_id}'"

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """What the conditions name."""
        asked = self.criteria
        return {
            "workspace_id": self.scope.workspace_id,
            "conversation_id": None if asked.conversation_id is None else bigint(asked.conversation_id),
            "conversation_ids": array(asked.conversation_ids),
            "in_conversation": self._in_conversation,
            "since": asked.since,
            "until": asked.until,
            "roles": texts(asked.roles),
            "part_types": texts(asked.part_types),
            "tool_names": texts(asked.tool_names),
            "of_tools": array(self.of_tools or ()),
            "low": self.low,
            "high": self.high,
            "depth": asked.depth,
            "below": texts(self.below),
            "holding": texts([asked.under, *self.below] if asked.under else []),
            "at": self.at,
        }

    def where(self, table: Table, *, by_words_alone: bool = False, but_tools: bool = False) -> str:
        """The condition for the table's rows.

        `by_words_alone` keeps it from leading to them by another index than that for words. With `but_tools`, it is all
        but `OF_TOOL`.
        """
        # As it is written, no index serves it, and it is asked before all that would have to unpack something.
        is_led = by_words_alone and self.criteria.named and (table.knows_place or not self.is_one_conversation)
        owned = f"({self._owned}) IS TRUE" if is_led else self._owned
        conditions = [owned, table.only if self.at is None else table.only_then]
        conditions += {MESSAGES: self._of_messages, SUMMARIES: self._of_summaries, FILES: self._of_files}[table]()
        left_out = {"true", OF_TOOL} if but_tools else {"true"}
        return " AND ".join(each for each in conditions if each not in left_out) or "true"

    @property
    def _owned(self) -> str:
        if self.is_one_conversation:
            return "conversation_id = %(conversation_id)s"
        if self.criteria.conversation_ids:
            return "conversation_id = ANY(%(conversation_ids)s::bigint[])"
        return "true" if self.scope.workspace_id is None else IN_WORKSPACE

    def _of_messages(self) -> list[str]:
        asked = self.criteria
        place = self.place(MESSAGES)
        return [
            *([f"{place} > %(low)s"] if self.low > 0 else []),
            *([f"{place} <= %(high)s"] if self.high < self.newest or self.at is not None else []),
            *(["created_at >= %(since)s"] if asked.since else []),
            *(["created_at < %(until)s"] if asked.until else []),
            *(["role = ANY(%(roles)s::text[]::message_role[])"] if asked.roles else []),
            *([_HAS_PART] if asked.part_types else []),
            *([OF_TOOL if self.of_tools is None else OF_RARE_TOOL] if asked.tool_names else []),
            *([_HELD_BELOW] if asked.under else []),
        ]

    def _of_summaries(self) -> list[str]:
        """A summary covers a stretch, and is of every place and moment in it."""
        asked = self.criteria
        return [
            *(["last_seq > %(low)s"] if asked.from_seq else []),
            *(["first_seq <= %(high)s"] if asked.to_seq is not None else []),
            *(["latest_at >= %(since)s"] if asked.since else []),
            *(["earliest_at < %(until)s"] if asked.until else []),
            *(["depth = %(depth)s"] if asked.depth is not None else []),
            *(["summary_id = ANY(%(below)s::text[])"] if asked.under else []),
        ]

    def _of_files(self) -> list[str]:
        asked = self.criteria
        return [
            *(["created_at >= %(since)s"] if asked.since else []),
            *(["created_at < %(until)s"] if asked.until else []),
        ]

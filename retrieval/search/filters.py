"""Build the WHERE clauses of a search over messages, summaries and files.

Every filter is a condition in the search statement itself, so that a LIMIT counts only rows that pass all filters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from conversations.scope import Scope
from conversations.sql import array, bigint, load, texts
from retrieval.search.request import Key, Position, SearchRequest
from retrieval.types import ItemKind

_SQL = load("retrieval/search/filters.sql")
IN_WORKSPACE = "conversation_id IN (SELECT conversation_id FROM conversations WHERE workspace_id = %(workspace_id)s)"
# The full-text index also has place lexemes (`lcm_places`), which name the conversation of a row and its block. A block
# is BLOCK consecutive messages. A condition names at most _MOST_BLOCKS blocks; for more, only the conversation.
BLOCK, _MOST_BLOCKS = 1024, 40
# The greatest possible position.
NEWEST = 2**63 - 1

# The index in `sql/files.sql` is on exactly this expression.
FILE_TEXT = "(coalesce(file_name, '') || E'\\n' || coalesce(exploration_summary, ''))"


# There is one instance for each kind, so instances are compared by identity.
@dataclass(frozen=True, eq=False)
class Searchable:
    """A table to search, with SQL for its columns and for its order among the tables.

    `place_in_one` and `place_in_many` are SQL for the position of a row in the order of recording: in a search of one
    conversation a seq, in a search of several the id of a message. Rows at the same position are ordered by `rank`: the
    message, then the summaries that end with it, the deepest first, then files.
    """

    kind: ItemKind
    name: str
    id: str
    seq: str
    place_in_one: str
    place_in_many: str
    rank: str
    text: str = "content"
    vector: str = "content_tsv"
    tokens: str = "token_count"
    first_moment: str = "created_at"
    last_moment: str = "created_at"
    # Whether the full-text index has place lexemes for the rows of this table.
    has_places: bool = True
    # The condition for a row to be searched at all, now and as of an earlier moment.
    only: str = "true"
    only_then: str = "true"
    # The condition that the row has its text. Without it, the empty text of a cold or erased row might match a pattern.
    has_text: str = "erased_by_id IS NULL"


MESSAGE_RANK = 1_000_000
MESSAGES = Searchable(
    ItemKind.MESSAGE,
    "messages",
    id="message_id",
    seq="seq",
    place_in_one="seq",
    place_in_many="message_id",
    rank=str(MESSAGE_RANK),
    has_text="cold_block_id IS NULL AND erased_by_id IS NULL",
)
SUMMARIES = Searchable(
    ItemKind.SUMMARY,
    "summaries",
    id="summary_id",
    seq="first_seq",
    place_in_one="last_seq",
    place_in_many=_SQL["last_of_summary"].format(column="message_id"),
    rank="depth",
    first_moment="earliest_at",
    last_moment="latest_at",
    only=_SQL["not_superseded"],
    only_then=_SQL["not_superseded_then"],
)
FILES = Searchable(
    ItemKind.FILE,
    "large_files",
    id="file_id",
    seq=_SQL["last_before_file"].format(column="seq"),
    place_in_one=_SQL["last_before_file"].format(column="seq"),
    place_in_many=_SQL["last_before_file"].format(column="message_id"),
    rank="-1",
    text=FILE_TEXT,
    vector=f"lcm_tsv({FILE_TEXT})",
    has_places=False,
    tokens=f"octet_length({FILE_TEXT}) / 4",
    only_then="large_files.created_at <= %(at)s",
)
SEARCHABLES = (MESSAGES, SUMMARIES, FILES)


@dataclass(frozen=True)
class Filters:
    """The rows to search, as SQL conditions.

    `low` (exclusive) and `high` are positions of messages: seqs in a search of one conversation, otherwise ids.
    `newest` is the newest position, `size` the number of messages, both without filters. `at`: the moment to search as
    of, if any.
    """

    scope: Scope
    request: SearchRequest
    size: int
    low: int
    high: int
    newest: int
    # The ids of the summaries below `request.under`.
    below: tuple[str, ...] = ()
    at: datetime | None = None
    # The number of cold messages in these conversations.
    cold: int = 0
    # In a search of one conversation, the ranges of seqs that are not on its active path. In a search of several, not
    # None if any of them has such ranges; each row is then compared with the ranges of its conversation.
    off_path: str | None = None
    # If the requested tools were called rarely: the ids of all messages with calls of them or results of such calls.
    of_tools: tuple[int, ...] | None = None

    def as_of(self, first_page: Position) -> Filters:
        """Copy the filters without rows later than the first page of a search."""
        if first_page.at is None:
            return self
        newest, size, at = first_page.newest, first_page.size, first_page.at
        high = min(self.high, newest)
        return replace(self, low=min(self.low, high), high=high, newest=newest, size=size, at=at)

    @property
    def is_one_conversation(self) -> bool:
        return self.request.conversation_id is not None

    @cached_property
    def tables(self) -> tuple[Searchable, ...]:
        return tuple(table for table in SEARCHABLES if table.kind in self.request.kinds)

    @property
    def rows(self) -> int:
        """The approximate number of messages between `low` and `high`."""
        return self.high - self.low if self.is_one_conversation else self.size

    @property
    def is_narrowed(self) -> bool:
        """Whether the filters may exclude a message next to a match."""
        is_part = self.low > 0 or self.high < self.newest or self.at is not None or self.off_path is not None
        return is_part or self.request.picks_among_messages

    def place(self, table: Searchable) -> str:
        return table.place_in_one if self.is_one_conversation else table.place_in_many

    def high_before(self, key: Key | None) -> int:
        """The newest position that a message after the key can have."""
        return self.high if key is None else min(self.high, key[0] - 1)

    def behind(self, table: Searchable, key: Key | None) -> str:
        """The SQL condition for summaries or files that come after the key."""
        if key is None:
            return "true"
        own = f'({self.place(table)}, {table.rank}, {table.id} COLLATE "C")'
        return f"({own} < (%(key_place)s, %(key_rank)s, %(key_id)s)) IS TRUE"

    def matching(self, table: Searchable, *, places: str = "in_conversations") -> str:
        """The SQL condition with which the full-text index finds the rows for `query`.

        `places` is the name of the parameter with the place lexemes to search. Words and place lexemes are separate
        conditions: if one condition had both, the index would scan all entries of these place lexemes.
        """
        names = ["query", places] if table.has_places and self.request.named else ["query"]
        return " AND ".join(f"{table.vector} @@ %({name})s::tsquery" for name in names)

    def blocks(self, after: int, upto: int) -> str:
        """The tsquery of the place lexemes for the blocks with the seqs in (after, upto]."""
        blocks = range((after + 1) // BLOCK, upto // BLOCK + 1)
        if not self.is_one_conversation or len(blocks) > _MOST_BLOCKS:
            return self._in_conversations
        return " | ".join(f"'in {self.request.conversation_id}/{block}'" for block in blocks)

    @property
    def _in_conversations(self) -> str:
        return " | ".join(f"'in {each}'" for each in self.request.named)

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """The parameters of all SQL conditions."""
        request = self.request
        return {
            "workspace_id": self.scope.workspace_id,
            "conversation_id": None if request.conversation_id is None else bigint(request.conversation_id),
            "conversation_ids": array(request.conversation_ids),
            "in_conversations": self._in_conversations,
            "since": request.since,
            "until": request.until,
            "roles": texts(request.roles),
            "part_types": texts(request.part_types),
            "tool_names": texts(request.tool_names),
            "of_tools": array(self.of_tools or ()),
            "low": bigint(self.low),
            "high": bigint(self.high),
            "depth": request.depth,
            "below": texts(self.below),
            "holding": texts([request.under, *self.below] if request.under else []),
            "at": self.at,
            "off_path": self.off_path,
        }

    def where(self, table: Searchable, *, by_words: bool = True, costly: bool = True) -> str:
        """The WHERE clause of a table; with `costly`, also conditions on message parts.

        `by_words`: the full-text index must find the rows, so the planner must use no other index for these conditions.
        """
        owned = self._owned
        if by_words and owned != "true" and (table.has_places or not self.is_one_conversation):
            # With IS TRUE, the planner cannot use an index for this condition.
            owned = f"({owned}) IS TRUE"
        only = table.only if self.at is None else table.only_then
        return all_of({owned: True, only: True, **self._conditions(table), self.costly_of(table): costly})

    def costly_of(self, table: Searchable) -> str:
        """The SQL conditions on the parts of messages."""
        if table is not MESSAGES:
            return "true"
        finds_tool = bool(self.request.tool_names) and self.of_tools is None
        return all_of({_SQL["has_part"]: self.request.part_types, _SQL["of_tool"]: finds_tool})

    @property
    def _owned(self) -> str:
        if self.is_one_conversation:
            return "conversation_id = %(conversation_id)s"
        if self.request.conversation_ids:
            return "conversation_id = ANY(%(conversation_ids)s::bigint[])"
        return "true" if self.scope.workspace_id is None else IN_WORKSPACE

    def _conditions(self, table: Searchable) -> dict[str, Any]:
        """The SQL conditions of the request; the values say whether each one is set."""
        request, place = self.request, self.place(table)
        first, last = table.first_moment, table.last_moment
        conditions: dict[str, Any] = {f"{last} >= %(since)s": request.since, f"{first} < %(until)s": request.until}
        if table is not FILES:
            last_seq = f"{table.name}.{'seq' if table is MESSAGES else 'last_seq'}"
            name = "on_active_path" if self.is_one_conversation else "on_its_active_path"
            conditions[_SQL[name].format(seq=last_seq, table=table.name)] = self.off_path is not None
        if table is MESSAGES:
            conditions |= {
                f"{place} > %(low)s": self.low > 0,
                f"{place} <= %(high)s": self.high < self.newest or self.at is not None,
                "role = ANY(%(roles)s::text[]::message_role[])": request.roles,
                "message_id = ANY(%(of_tools)s::bigint[])": self.of_tools is not None,
                _SQL["held_below"]: request.under,
            }
        elif table is SUMMARIES:
            # A summary matches if the range that it covers overlaps the requested range.
            conditions |= {
                "last_seq > %(low)s": request.from_seq,
                "first_seq <= %(high)s": request.to_seq is not None,
                "depth = %(depth)s": request.depth is not None,
                "summary_id = ANY(%(below)s::text[])": request.under,
            }
        return conditions


def key_values(key: Key | None) -> dict[str, Any]:
    """The SQL parameters of `Filters.behind`."""
    if key is None:
        return {}
    return {"key_place": bigint(key[0]), "key_rank": bigint(key[1]), "key_id": key[2]}


def all_of(conditions: Mapping[str, Any]) -> str:
    """Join the conditions that are set with AND; `true` if none is set."""
    return " AND ".join(each for each, is_set in conditions.items() if is_set and each != "true") or "true"

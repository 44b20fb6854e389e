"""The request of a search, and its results; no I/O.

A filter on a property excludes all kinds of items without this property: summaries have no role, messages no depth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple
from zlib import crc32

from conversations.content.lossless_values import is_storable
from conversations.errors import Invalid, param_error
from conversations.humanize import counted
from conversations.types import PartType, Role
from retrieval.policy import RetrievalPolicy
from retrieval.types import BranchChoice, GrepMode, GrepScope, GrepSort, ItemKind, Snippet

MESSAGE, SUMMARY, FILE = ItemKind.MESSAGE, ItemKind.SUMMARY, ItemKind.FILE
_KINDS = {
    GrepScope.MESSAGES: frozenset({MESSAGE}),
    GrepScope.SUMMARIES: frozenset({SUMMARY}),
    GrepScope.BOTH: frozenset({MESSAGE, SUMMARY}),
    GrepScope.FILES: frozenset({FILE}),
    GrepScope.ALL: frozenset({MESSAGE, SUMMARY, FILE}),
}
# For each filter, the kinds of items that have its property. All kinds have the properties of the other filters.
_HAD_BY = {
    **dict.fromkeys(("roles", "part_types", "tool_names"), frozenset({MESSAGE})),
    "depth": frozenset({SUMMARY}),
    **dict.fromkeys(("from_seq", "to_seq", "under"), frozenset({MESSAGE, SUMMARY})),
}
BY_MEANING = frozenset({GrepMode.SEMANTIC, GrepMode.HYBRID})
# The arguments that may differ between pages of the same search.
_OF_A_PAGE = frozenset({"limit", "max_tokens", "cursor"})


@dataclass(frozen=True)
class SearchRequest:
    """The arguments of `RetrievalEngine.grep`; empty filters match everything.

    The moment `since` is included, `until` is not. `from_seq` and `to_seq` need a single conversation. `under` names a
    summary: only its direct and indirect sources are searched.
    """

    query: str
    mode: GrepMode = GrepMode.FULL_TEXT
    scope: GrepScope = GrepScope.BOTH
    sort: GrepSort | None = None
    limit: int = 20
    max_tokens: int | None = None
    cursor: str | None = None
    cold: bool = False
    conversation_id: int | None = None
    conversation_ids: tuple[int, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    roles: tuple[Role | str, ...] = ()
    part_types: tuple[PartType | str, ...] = ()
    tool_names: tuple[str, ...] = ()
    from_seq: int | None = None
    to_seq: int | None = None
    depth: int | None = None
    under: str | None = None
    branch: BranchChoice = BranchChoice.ACTIVE

    def validated(self, policy: RetrievalPolicy) -> SearchRequest:
        """Normalize the request; raises Invalid for a param with which nothing can match."""
        self._check_query(policy)
        if self.conversation_id is not None and self.conversation_ids:
            raise param_error("conversation_ids", "Give either one conversation or a list of them.")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise param_error("until", "This is not later than since; give a later time.")
        if self.from_seq is not None and self.to_seq is not None and self.from_seq > self.to_seq:
            raise param_error("to_seq", f"This is before from_seq, {self.from_seq}; give a later seq.")
        if len(self.named) != 1 and self.under is None:
            for name, seq in (("from_seq", self.from_seq), ("to_seq", self.to_seq)):
                if seq is not None:
                    raise param_error(name, "Each conversation numbers its messages from 1: name one conversation.")
        if MESSAGE not in self.kinds and self.cold:
            raise param_error("cold", "Only messages are in the cold tier: search summaries and files without cold.")
        if self.mode in BY_MEANING and self.cold:
            raise param_error("mode", "Cold texts have no embeddings: search them with mode full_text or regex.")
        if self.order is not GrepSort.RECENCY and self.cold:
            raise param_error("sort", "Cold texts are not indexed, so they cannot be ranked: sort by recency.")
        if self.order is not GrepSort.RECENCY and self.mode is GrepMode.REGEX:
            raise param_error("sort", "Matches of a regular expression have no rank: sort by recency.")
        if self.order is not GrepSort.RELEVANCE and self.mode in BY_MEANING:
            raise param_error("sort", "Matches by meaning are sorted by relevance only: leave out sort.")
        return replace(self, conversation_id=self.named[0], conversation_ids=()) if len(self.named) == 1 else self

    def _check_query(self, policy: RetrievalPolicy) -> None:
        is_regex = self.mode is GrepMode.REGEX
        longest = policy.max_pattern_length if is_regex else policy.max_query_length
        if not self.query.strip():
            raise param_error("query", "There is nothing to search for in this; give a word.")
        if len(self.query) > longest:
            raise param_error("query", f"{counted(len(self.query), 'character')} are too many; at most {longest} fit.")
        if not is_storable(self.query):
            sentence = "No text contains NUL or a lone surrogate; remove it from the query."
            raise Invalid(f"query: {sentence}", code="bad_pattern") if is_regex else param_error("query", sentence)

    @property
    def order(self) -> GrepSort:
        """The requested sort order, or the default of the mode."""
        if self.sort is not None:
            return self.sort
        return GrepSort.RECENCY if self.mode is GrepMode.REGEX or self.cold else GrepSort.RELEVANCE

    @cached_property
    def kinds(self) -> frozenset[ItemKind]:
        """The kinds of items that can pass all filters; raises Invalid if none can."""
        kinds = _KINDS[self.scope]
        for name, having in _HAD_BY.items():
            if getattr(self, name) in (None, ()):
                continue
            if not kinds & having:
                raise param_error(
                    name, f"No kind that other params allow ({', '.join(sorted(kinds))}) has this; leave one out."
                )
            kinds &= having
        if self.mode is GrepMode.SEMANTIC:
            if MESSAGE not in kinds:
                raise param_error("mode", "Only messages are found by meaning; search summaries and files for words.")
            kinds &= {MESSAGE}
        return kinds

    @property
    def named(self) -> tuple[int, ...]:
        """The ids of the conversations to search; empty for all."""
        return self.conversation_ids if self.conversation_id is None else (self.conversation_id,)

    @property
    def picks_among_messages(self) -> bool:
        """Whether a filter other than a range of seqs may exclude messages."""
        return bool(self.since or self.until or self.roles or self.part_types or self.tool_names or self.under)

    def fingerprint(self, workspace_id: int | None) -> str:
        """A hash of the search, without page arguments, that binds cursors to it."""
        values = [(each.name, getattr(self, each.name)) for each in fields(self) if each.name not in _OF_A_PAGE]
        text = repr((workspace_id, self.order, values))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# A sort key in the order of recording, unique to each row: position, rank, id.
Key = tuple[int, int, str]


class FoundRow(NamedTuple):
    """A matching row and its position by time; `snippet` is None until it is made."""

    id: int | str
    # A seq if one conversation is searched, otherwise the id of a message.
    order_place: int
    rank: int = 0
    snippet: Snippet | None = None
    worth: float = 0.0

    @property
    def key(self) -> Key:
        """The sort key by recency, unique to each row; the greatest key comes first."""
        return (self.order_place, self.rank, str(self.id))

    @property
    def mark(self) -> int:
        """A short hash of the item, by which a cursor finds the row again."""
        return crc32(str(self.id).encode()) & 0xFFFFFF

    @property
    def kind(self) -> ItemKind:
        if isinstance(self.id, int):
            return ItemKind.MESSAGE
        return ItemKind.FILE if self.id.startswith("file_") else ItemKind.SUMMARY


class Position(NamedTuple):
    """The end of a page, and values of the first page for its cursor.

    Without a key, it is the start of the first page. The key of a ranked row is the number of rows so far and its mark;
    that of any other row is its sort key. A query may be tried in several interpretations; `interpretation` is the
    number of the one in use. `newest`, `size` and `at` are values of the filters at the first page.
    """

    key: tuple[Any, ...] | None = None
    interpretation: int | None = None
    newest: int = 0
    size: int = 0
    at: datetime | None = None

    def rows_before(self, best: Sequence[FoundRow]) -> int:
        """The number of ranked rows before the page.

        If the last of them no longer exists, the page begins one row earlier.
        """
        if self.key is None:
            return 0
        given, mark = self.key
        marked = [place for place, each in enumerate(best, start=1) if each.mark == mark]
        return min(marked, key=lambda place: abs(place - given), default=max(0, given - 1))


BEGINNING = Position()


@dataclass(frozen=True)
class Found:
    """The rows that a search found, in order, and how it interpreted the query.

    `rows` has one row more than the page if there is a next page. `position_of` returns the position after the row with
    a given index. If the search ended early, `ends_at` is the position at which to continue after all rows. `lexemes`
    are the lexemes that snippets highlight, with their weights.
    """

    rows: Sequence[FoundRow]
    position_of: Callable[[int], Position]
    lexemes: Mapping[str, float] = field(default_factory=dict)
    ends_at: Position | None = None
    relaxed: bool = False
    bounded: bool = False
    used: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    note: str | None = None
    # The order of the rows, if it is not the requested one.
    sort: GrepSort | None = None

"""Make pages of found rows: matches, token caps and signed cursors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from compaction.sources import withheld_in
from conversations.sql import array, load, rows, texts
from conversations.store.cursors import read_cursor, write_cursor
from conversations.types import Role
from retrieval.search.filters import SEARCHABLES, Key
from retrieval.search.snippets import SEARCHED, Needles, snippet
from retrieval.types import GrepSort, ItemKind, Match, Snippet

# The tokens of a match in JSON besides its texts (names, ids, times, punctuation), and of each highlight.
FRAME_TOKENS, HIGHLIGHT_TOKENS = 160, 8
_REFUSAL = (
    "This is not a cursor that grep gave for this search, or it was changed; only limit and max_tokens may change from "
    "page to page"
)

_SQL = load("retrieval/search/matches.sql")
_SHOWN = {
    each.kind: _SQL[f"shown_{each.name}"].format(seq=each.seq, tokens=each.tokens, text=each.text)
    for each in SEARCHABLES
}
# The columns of these statements.
_COLUMNS = (
    "id", "conversation_id", "session_id", "first_seq", "last_seq", "created_at", "token_count", "content",
    "covered_by", "active", "role", "author", "depth", "file_name", "has_quarantines",
)  # fmt: skip


class FoundRow(NamedTuple):
    """A row that matches, and its place by time. `snippet`: if known already."""

    id: int | str
    # A seq where one conversation is searched, else the id of a message.
    order_place: int
    rank: int = 0
    snippet: Snippet | None = None
    worth: float = 0.0

    @property
    def key(self) -> Key:
        """The sort key by recency, unique to each row; the greatest comes first."""
        return (self.order_place, self.rank, str(self.id))

    @property
    def kind(self) -> ItemKind:
        if isinstance(self.id, int):
            return ItemKind.MESSAGE
        return ItemKind.FILE if self.id.startswith("file_") else ItemKind.SUMMARY


class Position(NamedTuple):
    """Where a page ends, and what its cursor remembers of the first page.

    Without a key, it is the beginning. `interpretation` is the number of the attempt at the query that is in use;
    `newest`, `size` and `at` are those of the filters at the first page.
    """

    key: tuple[Any, ...] | None = None
    interpretation: int | None = None
    newest: int = 0
    size: int = 0
    at: datetime | None = None


BEGINNING = Position()


@dataclass(frozen=True)
class Found:
    """What a search found, in order, and how it interpreted the query.

    `rows` has one more than the page if there are more. `position_of` gives the position after the row at an index.
    `ends_at` is where to continue after all rows, if not everything was searched. `lexemes` are those that snippets
    show, with their worths.
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
    # How they are sorted, where it is not as requested.
    sort: GrepSort | None = None


def matches(found: Sequence[FoundRow], needles: Needles) -> tuple[Match, ...]:
    """Make the matches of found rows, in order; snippets show the `needles`."""
    if not found:
        return ()
    values = {
        "messages": array(each.id for each in found if isinstance(each.id, int)),
        "others": texts(each.id for each in found if isinstance(each.id, str)),
        "is_shown": any(each.snippet is None for each in found),
        "searched": SEARCHED,
    }
    present = {each.kind for each in found}
    statement = " UNION ALL ".join(f"({text})" for kind, text in _SHOWN.items() if kind in present)
    shown = {row[0]: dict(zip(_COLUMNS, row, strict=True)) for row in rows(statement, values)}
    hidden = [id for id, row in shown.items() if id.isdigit() and not row["active"] and row["covered_by"] is None]
    covering = dict(rows(_SQL["covering_summaries"], {"messages": array(hidden)})) if hidden else {}
    for id, summary_id in covering.items():
        shown[id]["covered_by"] = summary_id
    affected = {row["conversation_id"] for row in shown.values() if row.pop("has_quarantines")}
    withheld = withheld_in(affected) if affected else frozenset()
    there = [each for each in found if str(each.id) in shown]
    return tuple(_match(each, needles, withheld, **shown[str(each.id)]) for each in there)


def _match(found: FoundRow, needles: Needles, withheld: Collection[str], *, content: str | None, **shown: Any) -> Match:
    if isinstance(found.id, int):
        shown |= {"id": f"msg_{found.id}", "role": Role(shown["role"])}
    if shown["id"] in withheld:
        shown |= {"author": None, "file_name": None, "quarantined": True}
        return Match(**shown, kind=found.kind, score=found.worth, snippet=Snippet("", 0))
    return Match(**shown, kind=found.kind, score=found.worth, snippet=found.snippet or snippet(content or "", needles))


def fitting(found: Sequence[Match], *, max_tokens: int, count: Callable[[str], int]) -> int:
    """How many of the first matches fit `max_tokens`; at least one."""
    room = max_tokens
    for place, match in enumerate(found):
        shown = filter(None, (match.snippet.text, match.session_id, match.author, match.file_name))
        room -= FRAME_TOKENS + HIGHLIGHT_TOKENS * len(match.snippet.highlights) + sum(map(count, shown))
        if room < 0:
            return max(1, place)
    return len(found)


def write_position(position: Position, search: str) -> str:
    """Write the signed cursor of a position, bound to a search's fingerprint."""
    key = position.key or ()
    state = (position.interpretation,) if position.at is None else (position.newest, position.size, position.at)
    return write_cursor([*state, *key], of="grep", request=search)


def read_position(cursor: str, search: str) -> Position:
    """Read a cursor. Raises Invalid (`bad_cursor`) for one of another search."""
    values: list[Any] = read_cursor(cursor, of="grep", request=search, refusal=_REFUSAL)
    if len(values) > 2 and isinstance(values[2], datetime):
        newest, size, at, *key = values
        return Position(tuple(key), newest=newest, size=size, at=at)
    interpretation, *key = values
    return Position(tuple(key), interpretation)

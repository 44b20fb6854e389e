"""Build pages of matches from found rows, within a token limit; sign cursors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from compaction.sources import withheld_in
from conversations.models import Summary
from conversations.sql import array, load, rows, texts
from conversations.store.cursors import read_cursor, write_cursor
from conversations.store.read import messages_of
from conversations.types import Role
from retrieval.search.filters import SEARCHABLES, Key
from retrieval.search.snippets import SEARCHED, Needles, snippet
from retrieval.types import GrepSort, ItemKind, Match, Snippet

# The tokens of a match's JSON without its texts (names, ids, times, punctuation), and of each highlight.
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
# The columns of the statements in _SHOWN.
_COLUMNS = (
    "id", "conversation_id", "session_id", "first_seq", "last_seq", "created_at", "token_count", "content",
    "covered_by", "active", "role", "author", "depth", "file_name", "has_quarantines",
)  # fmt: skip


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
    def kind(self) -> ItemKind:
        if isinstance(self.id, int):
            return ItemKind.MESSAGE
        return ItemKind.FILE if self.id.startswith("file_") else ItemKind.SUMMARY


class Position(NamedTuple):
    """The end of a page, and values of the first page for its cursor.

    Without a key, it is the start of the first page. A query may be tried in several interpretations; `interpretation`
    is the number of the one in use. `newest`, `size` and `at` are values of the filters at the first page.
    """

    key: tuple[Any, ...] | None = None
    interpretation: int | None = None
    newest: int = 0
    size: int = 0
    at: datetime | None = None


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


def matches(found: Sequence[FoundRow], needles: Needles) -> tuple[Match, ...]:
    """Build the matches of found rows, in order; snippets highlight the `needles`."""
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


def whole_texts(found: Sequence[Match]) -> dict[str, str]:
    """Read the whole texts of matching messages and summaries, by id."""
    numbers = [int(match.id.removeprefix("msg_")) for match in found if match.kind is ItemKind.MESSAGE]
    summaries = [match.id for match in found if match.kind is ItemKind.SUMMARY]
    contents = {message.id: message.content for message in messages_of(numbers)}
    return contents | dict(Summary.objects.filter(pk__in=summaries).values_list("pk", "content"))


def fitting(found: Sequence[Match], *, max_tokens: int, count: Callable[[str], int]) -> int:
    """The number of first matches that fit into `max_tokens`; at least one."""
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
    """Read a cursor; raises Invalid (`bad_cursor`) if it is of another search."""
    values: list[Any] = read_cursor(cursor, of="grep", request=search, refusal=_REFUSAL)
    if len(values) > 2 and isinstance(values[2], datetime):
        newest, size, at, *key = values
        return Position(tuple(key), newest=newest, size=size, at=at)
    interpretation, *key = values
    return Position(tuple(key), interpretation)

"""Search by words, newest first, in windows that become wider."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from conversations.sql import bigint, load, rows
from retrieval.search.filters import BLOCK, MESSAGE_RANK, MESSAGES, NEWEST, Filters, Searchable, key_values
from retrieval.search.prepare import Prepared
from retrieval.search.query.compiled_query import CompiledQuery
from retrieval.search.query.parser import ParsedQuery
from retrieval.search.request import BEGINNING, Found, FoundRow, Position

_SQL = load("retrieval/search/recency.sql")
# In one conversation, the first windows reach back this many blocks of messages. The last window has all others.
_WINDOWS = (4, 32)
# If at most this many matches are expected, one window has all messages.
_FEW = 300
# A walk may pass this many times the number of rows that should suffice on average, because words occur in clusters.
_MANY_TIMES = 4
_LEFT_OUT = "Texts with common words alone were left out; ask for something rarer to see everything."


class Window(NamedTuple):
    """The positions in (after, upto]; `walks`: row by row, without the word index."""

    after: int
    upto: int
    walks: bool = False


class _Attempt(NamedTuple):
    """One interpretation of the query, and the form of it that finds rows."""

    query: CompiledQuery
    chosen: CompiledQuery
    interpretation: int

    @property
    def is_relaxed(self) -> bool:
        """Whether any of the words is enough for a match."""
        return bool(self.interpretation % 2)


@dataclass(frozen=True)
class RecencySearch:
    """Finds texts by words, newest first; use it within `prepare.bounded`.

    It finds texts with all words of the query. If there are none, it finds texts with any of the words. If there are
    still none, it repeats both steps with the words of phrases instead of the phrases.
    """

    prepared: Prepared
    limit: int
    position: Position = BEGINNING

    def first(self, queries: Sequence[ParsedQuery]) -> Found | None:
        """Find the next matches after the position; None if the query has no lexeme."""
        interpretation = self.position.interpretation
        attempts = [each for each in self._attempts(queries) if interpretation in (None, each.interpretation)]
        for attempt in attempts:
            if found := self._found(attempt.chosen):
                return self._taken(found, attempt)
        return self._taken((), attempts[-1]) if attempts else None

    @property
    def _filters(self) -> Filters:
        return self.prepared.filters

    def _attempts(self, queries: Sequence[ParsedQuery]) -> Iterator[_Attempt]:
        for number, parsed in enumerate(queries):
            query = self.prepared.compiled(parsed)
            if query is None:
                return
            yield _Attempt(query, query.for_every_clause(), 2 * number)
            yield _Attempt(query, query, 2 * number + 1)
            if query.has_common_lexemes:
                yield _Attempt(query, query.for_any_lexeme(), 2 * number + 1)

    def _taken(self, found: Sequence[FoundRow], attempt: _Attempt) -> Found:
        """Build the result: the rows, and how the query was interpreted."""
        query = attempt.query
        terms = tuple(dict.fromkeys(term.text for term in query.parsed.terms))
        used = query.split_terms(self._lexemes_held(query, found))[0] if attempt.is_relaxed else terms
        is_bounded = attempt.is_relaxed and query.is_bounded
        return Found(
            found,
            lambda place: Position(found[place].key, attempt.interpretation),
            lexemes=query.rarities,
            relaxed=attempt.interpretation > 0,
            bounded=is_bounded,
            used=used,
            dropped=tuple(term for term in terms if term not in used),
            note=_LEFT_OUT if is_bounded else None,
        )

    def _found(self, query: CompiledQuery) -> list[FoundRow]:
        found: list[FoundRow] = []
        for window in self._windows(query):
            found += self._in_window(query, window, limit=self.limit - len(found))
            if len(found) >= self.limit:
                break
        return found

    def _windows(self, query: CompiledQuery) -> Iterator[Window]:
        """Yield the windows to search, newest first, without gaps between them."""
        low, high = self._filters.low, self._filters.high_before(self.position.key)
        start = min(high, max(low, high - self._worth_walking(query)))
        if start < high:
            yield Window(start, high, walks=True)
            if start <= low:
                return
        newest = start // BLOCK + 1
        are_few = query.expected_share * self._filters.rows <= _FEW
        blocks = _WINDOWS if self._filters.is_one_conversation and not are_few else ()
        ends = [start, *(max(low, (newest - each) * BLOCK - 1) for each in blocks), low]
        windows = [Window(after, upto) for upto, after in pairwise(dict.fromkeys(ends))]
        # If no messages are left, there may still be summaries or files at the position of the first message.
        yield from windows or [Window(low, start)]

    def _worth_walking(self, query: CompiledQuery) -> int:
        """The number of positions to walk back; 0 if the full-text index costs less."""
        filters, share = self._filters, query.expected_share
        if filters.of_tools is not None:
            return 0
        passed = _MANY_TIMES * self.limit / share
        indexed = min(filters.rows, _WINDOWS[0] * BLOCK) if filters.is_one_conversation else filters.rows
        apart = (filters.high - filters.low) / max(1, filters.rows)
        return int(passed * apart) if passed < share * indexed else 0

    def _in_window(self, query: CompiledQuery, window: Window, *, limit: int) -> list[FoundRow]:
        filters, key = self._filters, self.position.key
        is_first, is_last = window.upto == filters.high_before(key), window.after == filters.low
        # Summaries and files have positions of messages, also that of the key, or a position before the first message.
        upto = (key[0] if key is not None else NEWEST) if is_first else window.upto
        after = -1 if is_last else window.after
        statement = _SQL["newest_matches"].format(
            each=" UNION ALL ".join(self._of_table(table, query, window) for table in filters.tables)
        )
        values = {
            **filters.values,
            **key_values(key),
            "query": query.query,
            "limit": bigint(limit),
            "after": bigint(window.after),
            "upto": bigint(window.upto),
            "places": filters.blocks(window.after, window.upto),
            "others_after": bigint(after),
            "others_upto": bigint(upto),
            "others_places": filters.blocks(after, min(upto, filters.newest)),
        }
        return [
            FoundRow(int(id) if rank == MESSAGE_RANK else id, place, rank)
            for id, place, rank in rows(statement, values)
        ]

    def _of_table(self, table: Searchable, query: CompiledQuery, window: Window) -> str:
        filters = self._filters
        place = filters.place(table)
        if table is MESSAGES:
            return _SQL["messages_by_walk" if window.walks else "messages_by_index"].format(
                place=place,
                where=filters.where(table, by_words=not (window.walks and filters.is_one_conversation), costly=False),
                words=filters.matching(table, places="places"),
                costly=filters.costly_of(table),
            )
        return _SQL["others_by_index"].format(
            id=table.id,
            place=place,
            rank=table.rank,
            table=table.name,
            where=filters.where(table),
            words=filters.matching(table, places="others_places"),
            within=f"({place} > %(others_after)s) IS TRUE AND ({place} <= %(others_upto)s) IS TRUE AND "
            + filters.behind(table, self.position.key),
        )

    def _lexemes_held(self, query: CompiledQuery, found: Sequence[FoundRow]) -> set[str]:
        """The lexemes of the query that these rows contain."""
        held: set[str] = set()
        for table in self._filters.tables:
            ids = [str(each.id) for each in found if each.kind is table.kind]
            statement = _SQL["lexemes_held"].format(
                vector=table.vector, table=table.name, id=table.id, type="bigint" if table is MESSAGES else "text"
            )
            values = {"lexemes": list(query.lexemes), "ids": ids}
            held.update(lexeme for (lexemes,) in (rows(statement, values) if ids else ()) for lexeme in lexemes)
        return held

"""Read the rows that match a query best, and the messages beside them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress, count
from typing import Any

from conversations.sql import array, load, rows
from retrieval.search.filters import MESSAGES, Filters, Searchable
from retrieval.search.query.compiled_query import MOST_CANDIDATES, CompiledQuery, InARow, rarity
from retrieval.search.relevance import ranking
from retrieval.search.relevance.ranking import Hit, Neighbour, Place, conversation_of, seq_of

_SQL = load("retrieval/search_relevance.sql")
# What statistics do not foresee, no search looks at.
MOST_ROWS = 50_000
# Of messages with words so common that only the newest are searched: of so many, the tool is checked.
MOST_PROMISING = 5000

_COUNT = "greatest(count(*) FILTER (WHERE r{n} > 0), %(expected{n})s::float8) AS d{n}"
_RARITY = "{weight}::float8 * ln(1 + greatest(0, %(size)s::float8 - d{n} + 0.5::float8) / (d{n} + 0.5::float8)) AS w{n}"
_UNPACKED = "setweight({vector}, 'A', %(lexemes)s::text[])"


@dataclass(frozen=True)
class Attempt:
    """One way to search; if it gives fewer hits than `enough`, there may be another."""

    query: CompiledQuery
    enough: int

    @property
    def is_in_context(self) -> bool:
        """Whether messages are ranked with their neighbours; then length costs, too."""
        return not self.query.parsed.is_look_up


@dataclass(frozen=True)
class Hits:
    """The best rows of a table by themselves, and how rare each lexeme is.

    `present`: the terms that the hits hold. `is_cut`: there are more hits than these. `is_bounded`: there were too many
    to look at.
    """

    hits: tuple[Hit, ...]
    rarity: tuple[float, ...]
    present: frozenset[int] = frozenset()
    is_cut: bool = False
    is_bounded: bool = False


@dataclass(frozen=True)
class RankedRows:
    """Reads the best rows: `most` of those ranked in context, else `most_alone`.

    `dated`: messages come with their dates.
    """

    filters: Filters
    most: int
    most_alone: int
    dated: bool

    def of(self, attempt: Attempt) -> tuple[Hits, ...]:
        """The best rows of each table."""
        query = attempt.query
        statement = " UNION ALL ".join(
            f"({self._best(table, attempt, kind)})" for kind, table in enumerate(self.filters.tables)
        )
        fetched = rows(statement, self._values(query), binary=True)
        return tuple(
            self._hits([row for row in fetched if row[0] == kind], query) for kind in range(len(self.filters.tables))
        )

    def _best(self, table: Searchable, attempt: Attempt, kind: int) -> str:
        query = attempt.query
        terms, lexemes = range(len(query.terms)), range(len(query.lexemes))
        weights = [*(1 for _ in lexemes), *(each.weight for each in query.in_a_row)]
        in_a_row = [_row_rank(query, n, each) for n, each in enumerate(query.in_a_row, start=len(lexemes))]
        return _SQL["best_rows"].format(
            kind=kind,
            most=self.most if table is MESSAGES and attempt.is_in_context else self.most_alone,
            newest=self._newest(table, query),
            holding=self._holding(table, query),
            shares=", ".join([*(f"r{n}" for n in lexemes), *in_a_row]),
            counts=", ".join(_COUNT.format(n=n) for n in terms),
            rarities=", ".join(_RARITY.format(n=n, weight=weight) for n, weight in enumerate(weights)),
            rarity_columns=", ".join(f"w{n}" for n in terms),
            share_columns=", ".join(f"r{n}" for n in terms),
            worth=" + ".join(f"r{n} * w{n}" for n in terms),
            length_cost=ranking.LENGTH_COST_SQL if attempt.is_in_context else "1",
            one_place=ranking.PLACE_SQL,
            answered_in=_answered_in(table, attempt),
        )

    def _values(self, query: CompiledQuery) -> dict[str, Any]:
        filters = self.filters
        after = self._newest_after(query)
        by_tools = bool(filters.request.tool_names) and filters.of_tools is None
        return {
            **filters.values,
            **query.conditions,
            "query": query.query,
            "lexemes": list(query.lexemes),
            "size": float(filters.rows),
            "newest_after": after,
            "newest_places": filters.blocks(after, filters.high),
            "most_rows": MOST_ROWS,
            "most_candidates": MOST_CANDIDATES,
            "most_promising": MOST_PROMISING if by_tools else None,
            **{f"term{n}": term for n, term in enumerate(query.terms)},
            **{f"expected{n}": query.expected_of(n) for n in range(len(query.terms))},
        }

    def _holding(self, table: Searchable, query: CompiledQuery) -> str:
        where, words = self._conditions(table, query)
        ranks = (
            _SQL["lexeme_rank"].format(n=n, forms=len(query.found_as(lexeme))) for n, lexeme in enumerate(query.lexemes)
        )
        return _SQL["holding"].format(
            id=table.id,
            seq=table.seq,
            table=table.name,
            tokens=table.tokens,
            order_place=self.filters.place(table),
            # The author matters where the hits alone are ranked; that of neighbours is read with them.
            author="author" if table is MESSAGES else "NULL::text",
            created_at="created_at" if table is MESSAGES and self.dated else "NULL::timestamptz",
            vector=_UNPACKED.format(vector=table.vector) if len(query.terms) > 1 else table.vector,
            where=where,
            words=words,
            ranks=", ".join(ranks),
        )

    def _conditions(self, table: Searchable, query: CompiledQuery) -> tuple[str, str]:
        """The filters and the words. Of too many candidates, the newest are searched."""
        filters = self.filters
        if not self._takes_newest(table, query):
            return filters.where(table), filters.matching(table, query)
        if filters.request.picks_among_messages:
            return _SQL["is_newest"], filters.matching(table, query)
        newest = f"{filters.place(table)} > %(newest_after)s"
        if self._walks(query):
            return f"{filters.where(table)} AND {newest}", _SQL["matches_words"].format(vector=table.vector)
        words = filters.matching(table, query, places="newest_places")
        # As it is written, no other index serves it.
        return f"{filters.where(table)} AND ({newest}) IS TRUE", words

    def _newest(self, table: Searchable, query: CompiledQuery) -> str:
        """The step that finds the newest candidates where filters pick messages."""
        filters = self.filters
        if not (self._takes_newest(table, query) and filters.request.picks_among_messages):
            return ""
        return _SQL["newest_of_matching"].format(
            order_place=filters.place(MESSAGES),
            where=filters.where(MESSAGES, costly=False),
            words=filters.matching(MESSAGES, query),
            costly=filters.costly_of(MESSAGES),
        )

    def _takes_newest(self, table: Searchable, query: CompiledQuery) -> bool:
        """Whether there are too many candidates, and the newest of them are searched."""
        return table is MESSAGES and query.newest < 1

    def _newest_after(self, query: CompiledQuery) -> int:
        return self.filters.high - int(query.newest * (self.filters.high - self.filters.low))

    def _walks(self, query: CompiledQuery) -> bool:
        """Whether walking back costs less than the word index."""
        filters = self.filters
        return not filters.is_one_conversation and query.newest < query.expected_share

    def _hits(self, fetched: Sequence[tuple[Any, ...]], query: CompiledQuery) -> Hits:
        if not fetched:
            return Hits((), (rarity(found=0, among=self.filters.rows),) * len(query.terms))
        # Hundreds of rows hold the same few combinations of terms.
        complete: dict[tuple[bool, ...], bool] = {}
        hits = []
        for _, name, place, shares, tokens, answered_in, order_place, author, created_at, _ in fetched:
            held = tuple(map(bool, shares))
            if held not in complete:
                complete[held] = query.is_matched_by(tuple(_terms(held)))
            hits.append(Hit(name, place, shares, tokens, answered_in, complete[held], order_place, author, created_at))
        looked_at, *rarities = fetched[0][-1]
        present = frozenset(chain.from_iterable(map(_terms, complete)))
        return Hits(tuple(hits), tuple(rarities), present, looked_at > len(hits), looked_at >= MOST_ROWS)

    def neighbours(self, places: Collection[Place], *, asks_when: bool) -> list[Neighbour]:
        """The messages at these seqs, without those that the filters leave out.

        With `asks_when`, of each whether it tells a time.
        """
        if not places:
            return []
        filters = self.filters
        statement = _SQL["neighbours"].format(
            where=filters.where(MESSAGES, by_words=False) if filters.is_narrowed else "true",
            created_at="created_at" if self.dated else "NULL::timestamptz",
            tells_when=_SQL["tells_when"] if asks_when else "false",
        )
        near = {"conversations": array(map(conversation_of, places)), "seqs": array(map(seq_of, places))}
        return [Neighbour(*row) for row in rows(statement, {**filters.values, **near}, binary=True)]


def _row_rank(query: CompiledQuery, n: int, words: InARow) -> str:
    held = (f"r{query.lexemes.index(lexeme)} > 0" for lexeme in words.lexemes)
    return _SQL["row_rank"].format(n=n, all_held=" AND ".join(held))


def _answered_in(table: Searchable, attempt: Attempt) -> str:
    """The column for where a hit that asks is answered."""
    query = attempt.query
    if not attempt.is_in_context or table is not MESSAGES:
        return "NULL::integer"
    if query.takes_neighbours or query.is_sentence:
        return table.answered_in
    # To read the end of a text takes longer than to see that no hit follows it.
    return _SQL["answered_in_before_a_hit"].format(answered_in=table.answered_in)


def _terms(held: Sequence[bool]) -> Iterator[int]:
    """Which terms are held."""
    return compress(count(), held)

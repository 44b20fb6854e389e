"""Search by words, best match first; `make eval` measures its quality."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, compress, count
from typing import Any

from conversations.sql import array, load, rows, texts
from retrieval.search.filters import MESSAGES, SUMMARIES, Filters, Searchable
from retrieval.search.prepare import Prepared
from retrieval.search.query.compiled_query import MOST_CANDIDATES, CompiledQuery, rarity
from retrieval.search.query.parser import ParsedQuery, asks_when, dates_in, is_identifier
from retrieval.search.relevance import ranking
from retrieval.search.relevance.hits import Hit, Hits, Neighbour, Place
from retrieval.search.relevance.ranking import A_HANDFUL, LONG, PAGE_COSTS, Ranking, Weights, conversation_of, seq_of
from retrieval.search.request import BEGINNING, Found, FoundRow, Position
from retrieval.search.snippets import best_passage, only_listed

_SQL = load("retrieval/search/relevance.sql")
# In addition to the wanted matches: how many hits are scored with their neighbours, and how many of the best are then
# ranked by all criteria.
_RANKED, _PROMISING = 380, 150
# The maximum number of candidates, in case words are much more frequent than the statistics say.
MOST_ROWS = 50_000
# If words are so common that only the newest messages are searched, the tool is checked for at most this many messages.
MOST_PROMISING = 5000

# The lexemes of "Also named:" and "Expand for details about:", which begin the lists at the end of a summary. And the
# weight of a word that a summary has only in such a list, if messages are searched too: they have the word itself.
BEFORE_A_LIST, LISTED = ("also", "name", "expand", "detail"), 0.1

# `n` numbers the terms from 1, as arrays in SQL do. Whatever depends on a term is in an array and not in the text of
# the statement, so that queries with as many terms share a prepared statement.
_COUNT = "greatest(count(*) FILTER (WHERE r{n} > 0), (%(expected)s::float8[])[{n}]) AS d{n}"
_RARITY = (
    "(%(weights)s::float8[])[{n}] * ln(1 + greatest(0, %(size)s::float8 - d{n} + 0.5::float8) / (d{n} + 0.5::float8))"
)
# In a sentence, a lexeme that texts repeat has a greater idf, similar to residual idf, because it names their subject.
# Other words, such as `suggest`, may be as rare. `m` is the mean rank of a lexeme in the texts that have it, divided by
# the rank of one occurrence.
_REPEATED = "avg(r{n}) FILTER (WHERE r{n} > 0) / 0.6079::float8 AS m{n}"
_REPETITION = " + ln(greatest(1, m{n}))"
_UNPACKED = "setweight({vector}, 'A', %(lexemes)s::text[])"
_BOUNDED = (
    "Some of these words are in so many texts that not all of those were looked at, but only those that also have a "
    "rarer word, or else the newest; ask for something rarer to see everything."
)
_ALIKE = "Some of these words were not found, so words that begin like them were looked for, too."
_RANKED_ALL = "Only the best were ranked, and these are the last of them; sort by recency to see everything."

# A query, and what it finds in each table.
Attempt = tuple[CompiledQuery, tuple[Hits, ...]]


@dataclass(frozen=True)
class RelevanceSearch:
    """Finds the texts that match a query best; use it within `prepare.bounded`.

    The number of ranked rows depends on `wanted` and not on the page size, so all page sizes give the same order. With
    a position, the search is as of the moment of the first page.
    """

    prepared: Prepared
    limit: int
    position: Position = BEGINNING
    wanted: int = 20
    prefers_new: bool = False
    page_costs: float = PAGE_COSTS

    def first(self, queries: Sequence[ParsedQuery]) -> Found | None:
        """Find the next matches after the position; None if the query has no lexeme.

        These are texts with every word if there are at least A_HANDFUL of them, and otherwise texts with any word.
        """
        before, parsed = self.position, queries[0]
        filters = self.prepared.filters.as_of(before)
        prepared = replace(self.prepared, filters=filters)
        dates = dates_in(parsed.text)
        most, promising = _RANKED + self.wanted, _PROMISING + 3 * self.wanted
        # The recency factor can move a new row up from a low rank. So with it, more rows of every table are read.
        rows = RankedRows(filters, most, most if self.prefers_new else promising, dated=bool(dates))
        attempt = _first_that_finds_enough(rows, prepared, queries)
        if attempt is None:
            return None
        query, found = attempt
        # The idf in the first table is used for all tables. If messages are searched, this is the idf among messages.
        weights = Weights(
            found[0].rarity,
            ranking.names_in(query.parsed.text),
            dates,
            is_sentence=query.is_sentence,
            asks_when=query.is_sentence and asks_when(query.parsed.text),
            names_identifier=any(is_identifier(term.text) for term in query.parsed.terms),
            in_a_row=len(query.in_a_row),
            page_costs=self.page_costs,
        )
        ranked, is_relaxed = Ranking(
            query,
            weights,
            promising,
            partial(rows.neighbours, weights=weights),
            newest=filters.newest if self.prefers_new else None,
        ).of(found)
        best = [FoundRow(each.id, each.order_place, worth=each.worth) for each in ranked]
        given = before.rows_before(best)
        behind = best[given:]
        then = prepared.first_page
        is_bounded = query.is_bounded or any(each.is_bounded for each in found)
        is_last_of_some = len(behind) < self.limit and any(each.is_cut for each in found)
        present = _present(query, found)
        used, dropped = query.split_terms(present.difference(query.beginnings))
        has_alike = not present.isdisjoint(query.beginnings)
        notes = (_ALIKE if has_alike else None, _BOUNDED if is_bounded else _RANKED_ALL if is_last_of_some else None)
        phrases = () if query.parsed is parsed else (f'"{term.text}"' for term in parsed.terms if term.is_phrase)
        worths = zip(query.lexemes, weights.rarity, strict=False)
        return Found(
            behind[: self.limit],
            lambda place: then._replace(key=(given + place + 1, behind[place].mark)),
            lexemes={form: worth for each, worth in worths for form in query.found_as(each)},
            relaxed=is_relaxed or query.parsed is not parsed or has_alike,
            used=used,
            dropped=(*phrases, *dropped),
            bounded=is_bounded,
            note=" ".join(filter(None, notes)) or None,
        )


def _first_that_finds_enough(rows: RankedRows, prepared: Prepared, queries: Sequence[ParsedQuery]) -> Attempt | None:
    """The first attempt with enough hits, or else the last one for the first query."""
    last = None
    for parsed in queries:
        tried = None
        for query in _attempts(prepared, parsed):
            tried = query, rows.of(query)
            enough = A_HANDFUL if query.wants_every_clause or query.wants_words else 1
            if sum(not hit.is_of_lcm for each in tried[1] for hit in each.hits) >= enough:
                return _with_beginnings(rows, *tried)
        last = last or tried
    return _with_beginnings(rows, *last) if last else None


def _with_beginnings(rows: RankedRows, query: CompiledQuery, found: tuple[Hits, ...]) -> Attempt:
    """Search again if words are in no text found: for words that begin like them."""
    wider = query.for_beginnings(_present(query, found))
    return (wider, rows.of(wider)) if wider else (query, found)


def _present(query: CompiledQuery, found: Sequence[Hits]) -> frozenset[str]:
    """The lexemes of the query that some of the texts found have."""
    return query.lexemes_at(chain.from_iterable(each.present for each in found))


def _attempts(prepared: Prepared, parsed: ParsedQuery) -> Iterator[CompiledQuery]:
    """Yield the forms of a query to try, in order; none if it has no lexeme."""
    query = prepared.compiled(parsed, in_all_forms=True)
    if query is None:
        return
    if not parsed.is_one_word:
        if not parsed.is_sentence and len(query.clauses) > 1:
            # A few words usually belong together, and texts with all of them cost much less to find.
            yield query.for_every_clause()
        if parsed.is_look_up and (by_words := query.for_any_word()) is not None:
            # In a search for a path, texts with only the name of a directory in it are not relevant.
            yield by_words
    yield query
    if query.has_common_lexemes and not parsed.is_one_word:
        # There may be texts with a common lexeme, although no text has a rare one.
        yield query.for_any_lexeme()


@dataclass(frozen=True)
class RankedRows:
    """Reads the best rows of each table.

    It reads `most` rows if they are ranked in context, otherwise `most_alone`. `dated`: also read dates of messages.
    """

    filters: Filters
    most: int
    most_alone: int
    dated: bool

    def of(self, query: CompiledQuery) -> tuple[Hits, ...]:
        """Read the best rows of each table, with one statement."""
        tables = self.filters.tables
        statement = " UNION ALL ".join(f"({self._best(table, query, kind)})" for kind, table in enumerate(tables))
        fetched = rows(statement, self._values(query))
        return tuple(
            self._hits([row for row in fetched if row[0] == kind], table, query) for kind, table in enumerate(tables)
        )

    def _best(self, table: Searchable, query: CompiledQuery, kind: int) -> str:
        # Rows are ranked with their neighbours and with length normalization, except in a look-up of an identifier.
        is_in_context = not query.parsed.is_look_up
        terms, lexemes = range(1, len(query.terms) + 1), range(1, len(query.lexemes) + 1)
        repeated = lexemes if query.is_sentence else ()
        in_a_row = (_SQL["row_rank"].format(n=n) for n in terms[len(lexemes) :])
        newest, where, words = self._candidates(table, query)
        ranks = (_SQL["lexeme_rank"].format(n=n) for n in lexemes)
        return _SQL["best_rows"].format(
            kind=kind,
            id=table.id,
            seq=table.seq,
            table=table.name,
            tokens=table.tokens,
            order_place=self.filters.place(table),
            # The author is needed if only the hits are ranked. Otherwise `neighbours` reads it again.
            author="author" if table is MESSAGES else "NULL::text",
            role="role::text" if table is MESSAGES else "NULL::text",
            created_at="created_at" if table is MESSAGES and self.dated else "NULL::timestamptz",
            words=_SQL["words"].format(where=self._has_words(table, query)),
            of_lcm=_SQL["of_lcm"].format(id="best.id", of="best") if table is MESSAGES else "false",
            vector=_UNPACKED.format(vector=table.vector)
            if len(query.terms) > 1 or table is SUMMARIES
            else table.vector,
            newest=newest,
            where=where,
            matching=words,
            most=self.most if table is MESSAGES and is_in_context else self.most_alone,
            ranks=", ".join(ranks),
            shares=", ".join([*(f"r{n}" for n in lexemes), *in_a_row]),
            counts=", ".join([*(_COUNT.format(n=n) for n in terms), *(_REPEATED.format(n=n) for n in repeated)]),
            rarities=", ".join(f"{_RARITY}{_REPETITION if n in repeated else ''} AS w{{n}}".format(n=n) for n in terms),
            rarity_columns=", ".join(f"w{n}" for n in terms),
            share_columns=", ".join(f"r{n}" for n in terms),
            worth=" + ".join(f"r{n} * w{n}" for n in terms),
            length_cost=ranking.LENGTH_COST_SQL if is_in_context else "1",
            one_place=ranking.PLACE_SQL,
            answered_in=_answered_in(table, query),
        )

    def _has_words(self, table: Searchable, query: CompiledQuery) -> str:
        """The condition for texts in which the positions of words matter."""
        if table is SUMMARIES and MESSAGES in self.filters.tables:
            return "true"
        return f"token_count > {LONG}" if table is MESSAGES and len(query.terms) > 1 else "false"

    def _values(self, query: CompiledQuery) -> dict[str, Any]:
        filters = self.filters
        after = filters.high - int(query.newest * (filters.high - filters.low))
        by_tools = bool(filters.request.tool_names) and filters.of_tools is None
        return {
            **filters.values,
            "query": query.query,
            "lexemes": [*query.lexemes, *BEFORE_A_LIST],
            "size": float(filters.rows),
            "newest_after": after,
            "newest_places": filters.blocks(after, filters.high),
            "most_rows": MOST_ROWS,
            "most_candidates": MOST_CANDIDATES,
            "most_promising": MOST_PROMISING if by_tools else None,
            "terms": texts(query.terms),
            "forms": array(len(query.found_as(each)) for each in query.lexemes),
            # psycopg takes no list of both integers and floats.
            "expected": [float(query.expected_of(n)) for n in range(len(query.terms))],
            "weights": [*map(query.weight_of, query.lexemes), *(each.weight for each in query.in_a_row)],
        }

    def _candidates(self, table: Searchable, query: CompiledQuery) -> tuple[str, str, str]:
        """SQL of a first step, the filters, and the words: the conditions of candidates.

        If the words are so common that there would be too many candidates, only the newest rows are candidates.
        """
        filters = self.filters
        where, words = filters.where(table), filters.matching(table)
        if table is not MESSAGES or query.newest == 1:
            return "", where, words
        if filters.request.picks_among_messages:
            step = _SQL["newest_of_matching"].format(
                order_place=filters.place(table),
                where=filters.where(table, costly=False),
                words=words,
                costly=filters.costly_of(table),
            )
            return step, _SQL["is_newest"], words
        newest = f"{filters.place(table)} > %(newest_after)s"
        if not filters.is_one_conversation and query.newest < query.expected_share:
            # Reading the newest rows one by one costs less than the full-text index.
            return "", f"{where} AND {newest}", _SQL["matches_words"].format(vector=table.vector)
        # With IS TRUE, the planner can use no index for this condition, only the full-text index for the words.
        return "", f"{where} AND ({newest}) IS TRUE", filters.matching(table, places="newest_places")

    def _hits(self, fetched: Sequence[tuple[Any, ...]], table: Searchable, query: CompiledQuery) -> Hits:
        if not fetched:
            return Hits((), (rarity(found=0, among=self.filters.rows),) * len(query.terms), table is MESSAGES)
        # Cached by combination of terms, because hundreds of rows have only a few different combinations.
        complete: dict[tuple[bool, ...], bool] = {}
        looked_at, *rarities = fetched[0][-1]
        lexemes = {lexeme: term for term, lexeme in enumerate(query.lexemes)}
        hits = []
        for (
            _,
            name,
            place,
            shares,
            tokens,
            answered_in,
            order_place,
            author,
            role,
            created_at,
            of_lcm,
            words,
            _,
        ) in fetched:
            passage = best_passage(words, lexemes, rarities) if words and table is MESSAGES else None
            if words and table is SUMMARIES and (listed := only_listed(words, lexemes)):
                shares = _marked_down(shares, listed, query)
            held = tuple(map(bool, shares))
            if held not in complete:
                complete[held] = query.is_matched_by(tuple(_terms(held)))
            about = (order_place, author, role, created_at, of_lcm)
            hits.append(Hit(name, place, shares, tokens, answered_in, complete[held], *about, passage))
        present = frozenset(chain.from_iterable(map(_terms, complete)))
        is_cut, is_bounded = looked_at > len(hits), looked_at >= MOST_ROWS
        return Hits(tuple(hits), tuple(rarities), table is MESSAGES, present, is_cut, is_bounded)

    def neighbours(self, places: Collection[Place], *, weights: Weights) -> list[Neighbour]:
        """Read the messages at these positions that pass the filters.

        If the weights need it, also find out whether each message states a time, or an instruction.
        """
        if not places:
            return []
        filters = self.filters
        statement = _SQL["neighbours"].format(
            one_place=ranking.PLACE_SQL,
            order_place=filters.place(MESSAGES),
            where=filters.where(MESSAGES, by_words=False) if filters.is_narrowed else "true",
            has_text=MESSAGES.has_text,
            created_at="created_at" if self.dated else "NULL::timestamptz",
            of_lcm=_SQL["of_lcm"].format(id="messages.message_id", of="messages"),
            tells_when=_SQL["tells_when"] if weights.asks_when else "false",
            instructs=_SQL["instructs"] if weights.may_be_instructed else "false",
        )
        near = {"conversations": array(map(conversation_of, places)), "seqs": array(map(seq_of, places))}
        return [Neighbour(*row) for row in rows(statement, {**filters.values, **near})]


def _marked_down(shares: Sequence[float], listed: Collection[int], query: CompiledQuery) -> list[float]:
    """The tf of the terms of a summary, reduced for terms that it has only in a list."""
    of_rows = (any(query.lexemes.index(each) in listed for each in row.lexemes) for row in query.in_a_row)
    is_listed = (*(term in listed for term in range(len(query.lexemes))), *of_rows)
    return [LISTED * share if each else share for share, each in zip(shares, is_listed, strict=True)]


def _answered_in(table: Searchable, query: CompiledQuery) -> str:
    """The SQL column for the distance from a hit with a question to its answer."""
    if query.parsed.is_look_up or table is not MESSAGES:
        return "NULL::integer"
    if query.takes_neighbours or query.is_sentence:
        return _SQL["answered_in"]
    # Only for a hit that another hit follows, because otherwise the ends of many long texts would be fetched.
    return _SQL["answered_in_before_a_hit"].format(answered_in=_SQL["answered_in"])


def _terms(held: Sequence[bool]) -> Iterator[int]:
    """The indexes of the terms that a text has."""
    return compress(count(), held)

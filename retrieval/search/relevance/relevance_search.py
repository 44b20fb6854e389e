"""Search by words, best first. Quality and cost: `make eval`, `make bench`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, compress, count
from typing import Any

from conversations.sql import array, load, rows
from retrieval.search.filters import MESSAGES, SUMMARIES, Filters, Searchable
from retrieval.search.page import BEGINNING, Found, FoundRow, Position
from retrieval.search.prepare import Prepared
from retrieval.search.query.compiled_query import MOST_CANDIDATES, CompiledQuery, InARow, rarity
from retrieval.search.query.parser import ParsedQuery, asks_when, dates_in, is_identifier
from retrieval.search.relevance import ranking
from retrieval.search.relevance.hits import Hit, Hits, Neighbour, Place
from retrieval.search.relevance.ranking import (
    A_HANDFUL,
    LONG,
    Ranking,
    Weights,
    conversation_of,
    seq_of,
)

_SQL = load("retrieval/search/relevance.sql")
# Beyond the wanted: the hits that are ranked with their neighbours, and the best of them, which are ranked again with
# all criteria.
_RANKED, _PROMISING = 380, 150
# What statistics do not foresee, no search looks at.
MOST_ROWS = 50_000
# Of messages with words so common that only the newest are searched: of so many, the tool is checked.
MOST_PROMISING = 5000

# In words; docs/figures.md has what other passages change.
HALF_A_PASSAGE = 30
# The lexemes of "Also named:" and "Expand for details about:", with which the lists at the end of a summary begin; and
# how much a word counts that only stands there, beside messages. What was said with it is found by itself.
BEFORE_A_LIST, LISTED = ("also", "name", "expand", "detail"), 0.1
# Of a tsvector as text, a lexeme and the places where it stands, such as 'port':3A,17A. All words that are farther
# behind in a text have the last place.
_LEXEME, _PLACE, _LAST_PLACE = re.compile(r"'((?:[^']|'')*)':([0-9A-D,]+)"), re.compile(r"\d+"), 16_383

_COUNT = "greatest(count(*) FILTER (WHERE r{n} > 0), %(expected{n})s::float8) AS d{n}"
_RARITY = "{weight}::float8 * ln(1 + greatest(0, %(size)s::float8 - d{n} + 0.5::float8) / (d{n} + 0.5::float8)) AS w{n}"
_UNPACKED = "setweight({vector}, 'A', %(lexemes)s::text[])"
_BOUNDED = (
    "Some of these words are in so many texts that not all of those were looked at, but only those that also have a "
    "rarer word, or else the newest; ask for something rarer to see everything."
)
_RANKED_ALL = "Only the best were ranked, and these are the last of them; sort by recency to see everything."


@dataclass(frozen=True)
class RelevanceSearch:
    """The texts that match a query best; use it within `prepare.bounded`.

    So many are ranked as make a list for `wanted` of them with room to spare: the list does not depend on how much of
    it is given at a time. Behind a position, it is the list as it was at the first page.
    """

    prepared: Prepared
    limit: int
    position: Position = BEGINNING
    wanted: int = 20
    prefers_new: bool = False

    def first(self, queries: Sequence[ParsedQuery]) -> Found | None:
        """The first matches behind the position; None if the query has no lexeme.

        Those that hold every word, if there is a handful; else those that hold any.
        """
        before, filters, parsed = self.position, self.prepared.filters, queries[0]
        if before.at is not None:
            filters = filters.as_of(newest=before.newest, size=before.size, at=before.at)
        prepared = replace(self.prepared, filters=filters)
        dates = dates_in(parsed.text)
        most, promising = _RANKED + self.wanted, _PROMISING + 3 * self.wanted
        # What is new comes up from far behind: then it is chosen from as many, whatever it is.
        rows = RankedRows(filters, most, most if self.prefers_new else promising, dated=bool(dates))
        attempt = _first_that_finds_enough(rows, prepared, queries)
        if attempt is None:
            return None
        query, found = attempt
        # A word is as rare in a summary as it is among messages, where these are searched, too.
        weights = Weights(
            found[0].rarity,
            ranking.names_in(query.parsed.text),
            dates,
            is_sentence=query.is_sentence,
            asks_when=query.is_sentence and asks_when(query.parsed.text),
            names_identifier=any(is_identifier(term.text) for term in query.parsed.terms),
            in_a_row=len(query.in_a_row),
        )
        best, is_relaxed = Ranking(
            query,
            weights,
            promising,
            partial(rows.neighbours, asks_when=weights.asks_when),
            newest=filters.newest if self.prefers_new else None,
        ).of(found)
        given = 0 if before.key is None else ranking.places_given(best, *before.key)
        behind = best[given:]
        then = Position(newest=filters.newest, size=filters.size, at=filters.at or prepared.at)
        is_bounded = query.is_bounded or any(each.is_bounded for each in found)
        is_last_of_some = len(behind) < self.limit and any(each.is_cut for each in found)
        present = {query.lexemes[term] for each in found for term in each.present if term < len(query.lexemes)}
        used, dropped = query.split_terms(present)
        phrases = () if query.parsed is parsed else (f'"{term.text}"' for term in parsed.terms if term.is_phrase)
        worths = zip(query.lexemes, weights.rarity, strict=False)
        return Found(
            [FoundRow(each.id, each.order_place, worth=each.worth) for each in behind[: self.limit]],
            lambda place: then._replace(key=(given + place + 1, behind[place].mark)),
            lexemes={form: worth for each, worth in worths for form in query.found_as(each)},
            relaxed=is_relaxed or query.parsed is not parsed,
            used=used,
            dropped=(*phrases, *dropped),
            bounded=is_bounded,
            note=_BOUNDED if is_bounded else _RANKED_ALL if is_last_of_some else None,
        )


def _first_that_finds_enough(
    rows: RankedRows, prepared: Prepared, queries: Sequence[ParsedQuery]
) -> tuple[CompiledQuery, tuple[Hits, ...]] | None:
    """An attempt and its hits; if none finds enough, the last of the first query."""
    last = None
    for parsed in queries:
        tried = None
        for query in _attempts(prepared, parsed):
            tried = query, rows.of(query)
            enough = A_HANDFUL if query.wants_every_clause or query.wants_words else 1
            if sum(not hit.is_of_lcm for each in tried[1] for hit in each.hits) >= enough:
                return tried
        last = last or tried
    return last


def _attempts(prepared: Prepared, parsed: ParsedQuery) -> Iterator[CompiledQuery]:
    """Ways to search, to be tried in order; none if there is no word."""
    query = prepared.compiled(parsed, in_all_forms=True)
    if query is None:
        return
    if not parsed.is_one_word:
        if not parsed.is_sentence and len(query.clauses) > 1:
            # A few words mostly belong together, and those texts are found much sooner.
            yield query.for_every_clause()
        if parsed.is_look_up and (by_words := query.for_any_word()) is not None:
            # To find a path, all texts with the name of a directory in it are of no use.
            yield by_words
    yield query
    if query.has_common_lexemes and not parsed.is_one_word:
        # There may be no text with what is rare, but some with what is common.
        yield query.for_any_lexeme()


@dataclass(frozen=True)
class RankedRows:
    """Reads the best rows: `most` of those ranked in context, else `most_alone`.

    `dated`: messages come with their dates.
    """

    filters: Filters
    most: int
    most_alone: int
    dated: bool

    def of(self, query: CompiledQuery) -> tuple[Hits, ...]:
        """The best rows of each table."""
        tables = self.filters.tables
        statement = " UNION ALL ".join(f"({self._best(table, query, kind)})" for kind, table in enumerate(tables))
        fetched = rows(statement, self._values(query), binary=True)
        return tuple(
            self._hits([row for row in fetched if row[0] == kind], table, query) for kind, table in enumerate(tables)
        )

    def _best(self, table: Searchable, query: CompiledQuery, kind: int) -> str:
        # With their neighbours; then length costs, too.
        is_in_context = not query.parsed.is_look_up
        terms, lexemes = range(len(query.terms)), range(len(query.lexemes))
        weights = [*(1 for _ in lexemes), *(each.weight for each in query.in_a_row)]
        in_a_row = [_row_rank(query, n, each) for n, each in enumerate(query.in_a_row, start=len(lexemes))]
        newest, where, words = self._candidates(table, query)
        ranks = (
            _SQL["lexeme_rank"].format(n=n, forms=len(query.found_as(each))) for n, each in enumerate(query.lexemes)
        )
        return _SQL["best_rows"].format(
            kind=kind,
            id=table.id,
            seq=table.seq,
            table=table.name,
            tokens=table.tokens,
            order_place=self.filters.place(table),
            # The author matters where the hits alone are ranked; that of neighbours is read with them.
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
            counts=", ".join(_COUNT.format(n=n) for n in terms),
            rarities=", ".join(_RARITY.format(n=n, weight=weight) for n, weight in enumerate(weights)),
            rarity_columns=", ".join(f"w{n}" for n in terms),
            share_columns=", ".join(f"r{n}" for n in terms),
            worth=" + ".join(f"r{n} * w{n}" for n in terms),
            length_cost=ranking.LENGTH_COST_SQL if is_in_context else "1",
            one_place=ranking.PLACE_SQL,
            answered_in=_answered_in(table, query),
        )

    def _has_words(self, table: Searchable, query: CompiledQuery) -> str:
        """The condition for texts of which it matters where words stand."""
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
            **{f"term{n}": term for n, term in enumerate(query.terms)},
            **{f"expected{n}": query.expected_of(n) for n in range(len(query.terms))},
        }

    def _candidates(self, table: Searchable, query: CompiledQuery) -> tuple[str, str, str]:
        """A first step, the filters, and the words. Of too many, the newest are taken."""
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
            # Walking back costs less than the word index.
            return "", f"{where} AND {newest}", _SQL["matches_words"].format(vector=table.vector)
        # As it is written, no other index serves it.
        return "", f"{where} AND ({newest}) IS TRUE", filters.matching(table, places="newest_places")

    def _hits(self, fetched: Sequence[tuple[Any, ...]], table: Searchable, query: CompiledQuery) -> Hits:
        if not fetched:
            return Hits((), (rarity(found=0, among=self.filters.rows),) * len(query.terms), table is MESSAGES)
        # Hundreds of rows hold the same few combinations of terms.
        complete: dict[tuple[bool, ...], bool] = {}
        looked_at, *rarities = fetched[0][-1]
        lexemes = {form: term for term, each in enumerate(query.lexemes) for form in query.found_as(each)}
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

    def neighbours(self, places: Collection[Place], *, asks_when: bool) -> list[Neighbour]:
        """The messages at these seqs, without those that the filters leave out.

        With `asks_when`, of each whether it tells a time.
        """
        if not places:
            return []
        filters = self.filters
        statement = _SQL["neighbours"].format(
            one_place=ranking.PLACE_SQL,
            order_place=filters.place(MESSAGES),
            where=filters.where(MESSAGES, by_words=False) if filters.is_narrowed else "true",
            created_at="created_at" if self.dated else "NULL::timestamptz",
            of_lcm=_SQL["of_lcm"].format(id="messages.message_id", of="messages"),
            tells_when=_SQL["tells_when"] if asks_when else "false",
        )
        near = {"conversations": array(map(conversation_of, places)), "seqs": array(map(seq_of, places))}
        return [Neighbour(*row) for row in rows(statement, {**filters.values, **near}, binary=True)]


def best_passage(words: str, lexemes: Mapping[str, int], rarity: Sequence[float]) -> frozenset[int] | None:
    """The terms of the passage whose different terms are worth most; None if unknown.

    `words`: a tsvector as text, with the places of words, so that no text is read; `lexemes`: which term each is of.
    A passage is two halves that follow each other. The parts of compound words stand behind all other words.
    """
    halves: dict[int, set[int]] = defaultdict(set)
    for lexeme, places in _places(words).items():
        for place in places if lexeme in lexemes else ():
            if place < _LAST_PLACE:
                halves[place // HALF_A_PASSAGE].add(lexemes[lexeme])
    passages = {frozenset(first | halves.get(number + 1, set())) for number, first in halves.items()}
    # Of equally good ones always the same.
    return max(passages, key=lambda each: (sum(rarity[term] for term in each), sorted(each)), default=None)


def only_listed(words: str, lexemes: Mapping[str, int]) -> frozenset[int]:
    """The terms that a summary only lists at its end; arguments as of `best_passage`."""
    places = _places(words)
    also, expand = (set(places.get(each, ())) for each in ("also", "expand"))
    named = max((place for place in places.get("name", ()) if place - 1 in also), default=_LAST_PLACE)
    details = max((place for place in places.get("detail", ()) if place - 2 in expand), default=_LAST_PLACE)
    first = {each: places[each][0] for each in lexemes if each in places}
    before = {lexemes[each] for each, place in first.items() if place < min(named, details)}
    return frozenset(lexemes[each] for each in first).difference(before)


def _marked_down(shares: Sequence[float], listed: Collection[int], query: CompiledQuery) -> list[float]:
    """The shares of a summary, of which the terms that it only lists count little."""
    of_rows = (any(query.lexemes.index(each) in listed for each in row.lexemes) for row in query.in_a_row)
    is_listed = (*(term in listed for term in range(len(query.lexemes))), *of_rows)
    return [LISTED * share if each else share for share, each in zip(shares, is_listed, strict=True)]


def _places(words: str) -> dict[str, list[int]]:
    found = _LEXEME.findall(words)
    return {lexeme.replace("''", "'"): [*map(int, _PLACE.findall(places))] for lexeme, places in found}


def _row_rank(query: CompiledQuery, n: int, words: InARow) -> str:
    held = (f"r{query.lexemes.index(lexeme)} > 0" for lexeme in words.lexemes)
    return _SQL["row_rank"].format(n=n, all_held=" AND ".join(held))


def _answered_in(table: Searchable, query: CompiledQuery) -> str:
    """The column for where a hit that asks is answered."""
    if query.parsed.is_look_up or table is not MESSAGES:
        return "NULL::integer"
    if query.takes_neighbours or query.is_sentence:
        return _SQL["answered_in"]
    # Only where a hit follows: the end of a long text would have to be fetched.
    return _SQL["answered_in_before_a_hit"].format(answered_in=_SQL["answered_in"])


def _terms(held: Sequence[bool]) -> Iterator[int]:
    """Which terms are held."""
    return compress(count(), held)

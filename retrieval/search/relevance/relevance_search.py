"""Search by words, best first. Quality and cost: `make eval`, `make bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from retrieval.search.filters import MESSAGES, SUMMARIES
from retrieval.search.prepare import Prepared
from retrieval.search.query.compiled_query import CompiledQuery
from retrieval.search.query.parser import Dates, ParsedQuery, asks_when, dates_in
from retrieval.search.relevance import ranking
from retrieval.search.relevance.ranked_rows import Attempt, Hits, RankedRows
from retrieval.search.relevance.ranking import Hit, Weights, conversation_of, seq_of

# Fewer texts than this with every word in them, and those with any of the words are given too.
A_HANDFUL = 5
# Beyond the limit: the hits that are ranked with their neighbours, and the best of them, which are ranked again with
# all criteria.
_RANKED, _PROMISING = 380, 150
# Where a word is expected in so many times as many messages as are shown, the best of them mostly leave no place for
# what can be in a summary.
_MANY_TIMES = 10


class RankedMatch(NamedTuple):
    """One match and its worth. The greatest comes first: no two have the same `key`."""

    # Whether it is one of those that come before all others.
    is_first: bool
    worth: float
    conversation_id: int
    seq: int
    # The number of a message, or the id of a summary or a file.
    name: str
    # Whether it matches every clause of the query.
    is_complete: bool
    # Its place by when it came.
    order_place: int

    @property
    def key(self) -> tuple[Any, ...]:
        """Its place in the order of matches."""
        return self[:5]

    @property
    def id(self) -> int | str:
        return int(self.name) if self.name.isdigit() else self.name


@dataclass(frozen=True)
class RankedMatches:
    """Matches, best first, and how the query was taken.

    `at`: the moment of the search; `is_cut`: beyond these, there are hits that were not ranked.
    """

    found: tuple[RankedMatch, ...]
    lexemes: Mapping[str, float]
    at: datetime | None = None
    is_cut: bool = False
    relaxed: bool = False
    bounded: bool = False
    used: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class RelevanceSearch:
    """The texts that match a query best; use it within `prepare.bounded`.

    So many are ranked as make a list for `wanted` of them with room to spare: the list does not depend on how much of
    it is given at a time. `shown`: only so many of a longer list are shown, so what cannot be among these may be left
    out.
    """

    prepared: Prepared
    wanted: int
    prefers_new: bool = False
    shown: int = 0

    def best(self, queries: Sequence[ParsedQuery]) -> RankedMatches | None:
        """The best matches of the first query that has any; None without a word.

        Those that hold every word, if there is a handful; else those that hold any.
        """
        parsed, *others = queries
        plain_attempts = self._attempts(parsed)
        if not plain_attempts:
            return None
        if self._is_for_messages(plain_attempts[0]):
            of_messages = self._without_summaries().best(queries)
            if of_messages is not None and self._leaves_no_place(of_messages):
                return of_messages
        attempts = [*plain_attempts, *(each for other in others for each in self._attempts(other))]
        dates = dates_in(parsed.text)
        most, places = _RANKED + self.wanted, _PROMISING + 3 * self.wanted
        # What is new comes up from far behind: then it is chosen from as many, whatever it is.
        rows = RankedRows(self.prepared.filters, most, most if self.prefers_new else places, dated=bool(dates))
        found = []
        for attempt in attempts:
            found.append(rows.of(attempt))
            if sum(len(each.hits) for each in found[-1]) >= attempt.enough:
                break
        if len(found) > len(plain_attempts) and not any(each.hits for each in found[-1]):
            found = found[: len(plain_attempts)]
        query = attempts[len(found) - 1].query
        best = _Ranking(query, rows, places, self.prefers_new).of(found[-1], dates)
        if query.parsed is not parsed:
            phrases = tuple(f'"{term.text}"' for term in parsed.terms if term.is_phrase)
            best = replace(best, relaxed=True, dropped=phrases + best.dropped)
        return replace(best, at=self.prepared.at)

    def _without_summaries(self) -> RelevanceSearch:
        filters = replace(self.prepared.filters, missing=self.prepared.filters.missing | {SUMMARIES.kind})
        return replace(self, prepared=replace(self.prepared, filters=filters), shown=0)

    def _is_for_messages(self, first: Attempt) -> bool:
        """Whether messages alone probably fill what is shown: one word, and common."""
        query, is_of_both = first.query, self.prepared.filters.tables == (MESSAGES, SUMMARIES)
        is_one_word = query.is_one_word and len(query.terms) == 1 and first.is_in_context
        if not (self.shown and is_one_word and is_of_both) or self.prefers_new:
            return False
        return query.expected.get(query.lexemes[0], 0.0) >= _MANY_TIMES * self.shown

    def _leaves_no_place(self, best: RankedMatches) -> bool:
        """Whether no summary could be among the matches that are shown."""
        most = ranking.most_alone(max(best.lexemes.values()), forms=len(best.lexemes))
        return len(best.found) > self.shown and best.found[self.shown - 1].worth > most

    def _attempts(self, parsed: ParsedQuery) -> list[Attempt]:
        """Ways to search, to be tried in order; none if there is no word."""
        query = self.prepared.compiled(parsed, in_all_forms=True)
        if query is None:
            return []
        if parsed.is_one_word:
            return [Attempt(replace(query, is_one_word=True), enough=1)]
        attempts = []
        if not parsed.is_sentence and len(query.clauses) > 1:
            # A few words mostly belong together, and those texts are found much sooner.
            attempts.append(Attempt(query.for_every_clause(), enough=A_HANDFUL))
        by_words = query.for_any_word() if parsed.is_look_up else None
        if by_words is not None:
            # To find a path, all texts with the name of a directory in it are of no use.
            attempts.append(Attempt(by_words, enough=A_HANDFUL))
        attempts.append(Attempt(query, enough=1))
        if query.has_common_lexemes:
            # There may be no text with what is rare, but some with what is common.
            attempts.append(Attempt(query.for_any_lexeme(), enough=1))
        return attempts


@dataclass(frozen=True)
class _Ranking:
    """The ranking of the rows that one query found."""

    query: CompiledQuery
    rows: RankedRows
    # So many places of messages are ranked by all that is known of them.
    most: int
    prefers_new: bool

    def of(self, found: Sequence[Hits], dates: Dates) -> RankedMatches:
        """The best matches: of every clause if there are enough, else of any."""
        query, text = self.query, self.query.parsed.text
        # A word is as rare in a summary as it is among messages, where these are searched, too.
        weights = Weights(
            found[0].rarity,
            ranking.names_in(text),
            dates,
            is_sentence=query.is_sentence,
            asks_when=query.is_sentence and asks_when(text),
            in_a_row=len(query.in_a_row),
        )
        enough = 1 if query.is_one_word else A_HANDFUL
        is_settled = sum(hit.is_complete for each in found for hit in each.hits) >= enough
        matches: list[RankedMatch] = []
        for table, each in zip(self.rows.filters.tables, found, strict=True):
            if table is MESSAGES:
                matches += self._messages(each.hits, weights, is_settled)
            else:
                matches += self._each(each.hits, weights, is_settled)
        complete = [each for each in matches if each.is_complete]
        relaxed = len(complete) < enough and len(matches) > len(complete)
        best = matches if relaxed else complete
        if self.prefers_new:
            best = [each._replace(worth=self._fresher(each)) for each in best]
        present = {query.lexemes[term] for each in found for term in each.present if term < len(query.lexemes)}
        used, dropped = query.split_terms(present)
        worths = zip(query.lexemes, weights.rarity, strict=False)
        return RankedMatches(
            found=tuple(sorted(best, reverse=True)),
            is_cut=any(each.is_cut for each in found),
            lexemes={form: worth for each, worth in worths for form in query.found_as(each)},
            relaxed=relaxed,
            bounded=query.is_bounded or any(each.is_bounded for each in found),
            used=used,
            dropped=dropped,
        )

    def _messages(self, hits: Sequence[Hit], weights: Weights, is_settled: bool) -> list[RankedMatch]:
        """Messages and their neighbours by worth; settled, only complete ones."""
        if self.query.parsed.is_look_up:
            return self._each(hits, weights, is_settled)
        complete = {hit.place for hit in hits if hit.is_complete}
        own = None if self.query.takes_neighbours else {hit.place: hit for hit in hits}
        worths = ranking.in_context(hits, weights, only=own)
        places = {
            *ranking.best_places(worths, self.most),
            *ranking.best_places({place: worths[place] for place in complete}, self.most),
        }
        if is_settled:
            places &= complete
        if own is not None:
            return [self._match(own[place], worths[place] + weights.of_its_own(own[place])) for place in places]
        is_one = self.rows.filters.is_one_conversation
        found = []
        for row in self.rows.neighbours(places, asks_when=weights.asks_when):
            is_complete = row.place in complete
            is_first = not self.query.is_sentence and is_complete
            worth = worths[row.place] + weights.of_its_own(row)
            order_place = row.seq if is_one else row.id
            found.append(
                RankedMatch(is_first, worth, row.conversation_id, row.seq, str(row.id), is_complete, order_place)
            )
        return found

    def _each(self, hits: Sequence[Hit], weights: Weights, is_settled: bool) -> list[RankedMatch]:
        """Every hit by itself; settled, only those that are complete."""
        worth = ranking.by_keywords if self.query.parsed.is_look_up else ranking.alone
        return [self._match(hit, worth(hit, weights)) for hit in hits if hit.is_complete or not is_settled]

    def _match(self, hit: Hit, worth: float) -> RankedMatch:
        is_first = not self.query.is_sentence and hit.is_complete
        place = hit.place
        return RankedMatch(
            is_first, worth, conversation_of(place), seq_of(place), hit.name, hit.is_complete, hit.order_place
        )

    def _fresher(self, found: RankedMatch) -> float:
        newest = self.rows.filters.newest
        return ranking.fresher(found.worth, age=newest - found.order_place, oldest=newest)

"""Finds the messages and summaries that answer a question, best first. Quality and cost: `make eval`, `make bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from retrieval.search import ranking
from retrieval.search.lookup import Looked, Lookup
from retrieval.search.meanings import Understood, meanings
from retrieval.search.query import Question, loosened, parse
from retrieval.search.query_dates import dates_in
from retrieval.search.query_plan import Meaning, Plan, plan
from retrieval.search.ranking import Hit, Weights, conversation_of, seq_of
from retrieval.search.reach import Reach
from retrieval.search.tables import MESSAGES

# Fewer texts than this with every word in them, and those with any of the words are given too.
A_HANDFUL = 5
# Beyond as many as are asked for: the hits that are ranked with their neighbours, and the places that are looked at
# again with all that is known of them.
_RANKED, _PROMISING = 380, 150


class Found(NamedTuple):
    """One answer: a message by its number or a summary by its id, and what it is worth beside the others."""

    id: int | str
    conversation_id: int
    seq: int
    worth: float
    # Whether it answers every clause of the question.
    is_complete: bool = False
    # Whether those that do come before all others.
    is_first: bool = False
    # Where it stands by when it came.
    order_place: int = 0

    @property
    def key(self) -> tuple[Any, ...]:
        """Its place in the order of answers, where no two are alike; the greatest comes first."""
        return (self.is_first, self.worth, self.conversation_id, self.seq, str(self.id))


@dataclass(frozen=True)
class Answer:
    """The answers, best first, and how the question was understood. `lexemes`: what to show of them, and its worth.

    `at` is when it was asked; `is_cut`: beyond these, there are hits that were not ranked.
    """

    found: tuple[Found, ...]
    lexemes: Mapping[str, float]
    at: datetime | None = None
    is_cut: bool = False
    relaxed: bool = False
    bounded: bool = False
    used: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class FullText:
    """Full text search over what is within reach. Call it within `limits.bounded`.

    So many answers are ranked as make a list for `wanted` of them with room to spare: the list does not depend on how
    much of it is given at a time.
    """

    reach: Reach
    wanted: int
    prefers_new: bool = False

    def answer(self, query: str) -> Answer | None:
        """The best answers; None if the query has no word that full text search could look for."""
        question = parse(query)
        answer = self._answer(question)
        if answer is not None and not answer.found and any(term.is_phrase for term in question.terms):
            freely = self._answer(loosened(question))
            if freely is not None and freely.found:
                phrases = tuple(f'"{term.text}"' for term in question.terms if term.is_phrase)
                return replace(freely, relaxed=True, dropped=phrases + freely.dropped)
        return answer

    def _answer(self, question: Question) -> Answer | None:
        """The answers that hold every word, if there is a handful; else those that hold any."""
        asked, how = understood(question, self.reach)
        if how is None:
            return None
        search = _Search(question, Lookup(self.reach), self.wanted, self.prefers_new)
        return replace(self._best_of(search, asked.clauses, how), at=asked.at)

    def _best_of(self, search: _Search, clauses: Sequence[Sequence[Meaning]], how: Plan) -> Answer:
        if search.question.is_one_word:
            return search.run(replace(how, is_one_word=True))
        if not search.question.is_sentence and len(clauses) > 1:
            # A few words are mostly meant together, and that is also much the cheaper question.
            answer = search.run(how.for_every_clause())
            if len(answer.found) >= A_HANDFUL:
                return answer
        by_words = how.for_any_word() if search.question.is_look_up else None
        if by_words is not None:
            # Whoever looks for paths has no use for all texts with the name of a directory in it.
            answer = search.run(by_words)
            if len(answer.found) >= A_HANDFUL:
                return answer
        answer = search.run(how)
        if not answer.found and len(how.anchors) < len(how.lexemes):
            # What is rare was never said within reach; what is common may have been.
            return search.run(how.for_any_lexeme())
        return answer


def understood(question: Question, reach: Reach) -> tuple[Understood, Plan | None]:
    """What the question means to the index, and how to look it up within reach; no plan if there is nothing to."""
    asked = meanings(question)
    how = plan(
        asked.clauses,
        asked.excluded,
        frequencies=asked.statistics.frequencies,
        rows=reach.rows,
        everywhere=asked.statistics.messages,
        in_pairs=not question.is_sentence,
    )
    return asked, how


@dataclass(frozen=True)
class _Search:
    """One question put to one set of rows."""

    question: Question
    rows: Lookup
    wanted: int
    prefers_new: bool

    @cached_property
    def complete_first(self) -> bool:
        """Whether texts that answer every clause come before all others."""
        return not self.question.is_sentence

    def run(self, how: Plan) -> Answer:
        by_length = not self.question.is_look_up
        dates = dates_in(self.question.text)
        tables, most = self.rows.reach.tables, _RANKED + self.wanted
        looked = [self.rows.hits(table, how, most=most, by_length=by_length, dated=bool(dates)) for table in tables]
        # Where messages are searched too, a word is as rare in a summary as it is among them.
        weights = Weights(looked[0].rarity, ranking.names_in(self.question.text), dates)
        complete = sum(hit.is_complete for each in looked for hit in each.hits)
        is_settled = complete >= self._enough(how)
        found: list[Found] = []
        for table, each in zip(tables, looked, strict=True):
            if table is MESSAGES:
                found += self._messages(each.hits, weights, how, is_settled)
            else:
                found += self._each(each.hits, weights, is_settled)
        return self._best(found, looked, how, weights)

    def _enough(self, how: Plan) -> int:
        """So many texts that answer every clause, and no others are given beside them."""
        return 1 if how.is_one_word else A_HANDFUL

    def _messages(self, hits: Sequence[Hit], weights: Weights, how: Plan, is_settled: bool) -> list[Found]:
        """Messages, and those beside them, by what they are worth where they stand; settled, only complete ones."""
        if self.question.is_look_up:
            return self._each(hits, weights, is_settled)
        complete = {hit.place for hit in hits if hit.is_complete}
        own = None if how.takes_neighbours else {hit.place: hit for hit in hits}
        worths = ranking.in_context(hits, weights, only=own)
        most = 3 * self.wanted + _PROMISING
        places = {
            *ranking.best_places(worths, most),
            *ranking.best_places({place: worths[place] for place in complete}, most),
        }
        if is_settled:
            places &= complete
        if own is not None:
            return [self._hit(own[place], ranking.finished(worths[place], own[place], weights)) for place in places]
        is_one = self.rows.reach.is_one_conversation
        found = []
        for row in self.rows.neighbours(places, dated=bool(weights.dates)):
            place = row.place
            is_complete = place in complete
            found.append(
                Found(
                    row.id,
                    row.conversation_id,
                    row.seq,
                    ranking.finished(worths[place], row, weights),
                    is_complete,
                    is_first=self.complete_first and is_complete,
                    order_place=row.seq if is_one else row.id,
                )
            )
        return found

    def _each(self, hits: Sequence[Hit], weights: Weights, is_settled: bool) -> list[Found]:
        """Every hit by itself; settled, only those that are complete."""
        worth = ranking.by_keywords if self.question.is_look_up else ranking.alone
        return [self._hit(hit, worth(hit, weights)) for hit in hits if hit.is_complete or not is_settled]

    def _hit(self, hit: Hit, worth: float) -> Found:
        place, is_first = hit.place, self.complete_first and hit.is_complete
        return Found(hit.id, conversation_of(place), seq_of(place), worth, hit.is_complete, is_first, hit.order_place)

    def _best(self, found: Sequence[Found], looked: Sequence[Looked], how: Plan, weights: Weights) -> Answer:
        """The best of all: of those that answer every clause, if there is a handful of them, or one of the one word."""
        complete = [each for each in found if each.is_complete]
        relaxed = len(complete) < self._enough(how) and len(found) > len(complete)
        best = found if relaxed else complete
        if self.prefers_new:
            best = [each._replace(worth=self._fresher(each)) for each in best]
        present = {how.lexemes[term] for each in looked for term in each.present if term < len(how.lexemes)}
        meant = [each for clause in how.clauses for each in clause]
        return Answer(
            found=tuple(sorted(best, key=lambda each: each.key, reverse=True)),
            is_cut=any(len(each.hits) >= _RANKED + self.wanted for each in looked),
            lexemes=dict(zip(how.lexemes, weights.rarity, strict=False)),
            relaxed=relaxed,
            bounded=how.is_bounded or any(each.is_cut for each in looked),
            used=tuple(dict.fromkeys(each.term.text for each in meant if not present.isdisjoint(each.lexemes))),
            dropped=tuple(dict.fromkeys(each.term.text for each in meant if present.isdisjoint(each.lexemes))),
        )

    def _fresher(self, found: Found) -> float:
        newest = self.rows.reach.newest
        return ranking.fresher(found.worth, age=newest - found.order_place, oldest=newest)

"""Finds the messages and summaries that answer a question, best first. Quality and cost: `make eval`, `make bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from retrieval.search.filters import Reach
from retrieval.search.lookup import Looked, Lookup, Try
from retrieval.search.meanings import Meanings
from retrieval.search.query.compiled_query import Plan
from retrieval.search.query.parser import Question
from retrieval.search.query.query_dates import Dates, asks_when, dates_in
from retrieval.search.relevance import ranking
from retrieval.search.relevance.ranking import Hit, Weights, conversation_of, seq_of
from retrieval.search.searchables import MESSAGES, SUMMARIES

# Fewer texts than this with every word in them, and those with any of the words are given too.
A_HANDFUL = 5
# Beyond as many as are asked for: the hits that are ranked with their neighbours, and the places that are looked at
# again with all that is known of them; of what stands by itself, as many are ranked as there are such places. With 280
# and 100 of them R@10 of `make eval` is 0.813, not 0.818, and with 180 and 150 0.811.
_RANKED, _PROMISING = 380, 150
# Where a word is expected in so many times as many messages as are shown, the best of them mostly leave no place for
# what can be in a summary.
_MANY_TIMES = 10


class Found(NamedTuple):
    """One answer, and what it is worth beside the others. The greatest comes first: no two have the same `key`."""

    # Whether it is one of those that come before all others.
    is_first: bool
    worth: float
    conversation_id: int
    seq: int
    # The number of a message, or the id of a summary or a file.
    name: str
    # Whether it answers every clause of the question.
    is_complete: bool
    # Where it stands by when it came.
    order_place: int

    @property
    def key(self) -> tuple[Any, ...]:
        """Its place in the order of answers."""
        return self[:5]

    @property
    def id(self) -> int | str:
        return int(self.name) if self.name.isdigit() else self.name


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
    much of it is given at a time. `shown`: of a longer list only so many are taken, so what cannot be among
    these may be left out.
    """

    reach: Reach
    meanings: Meanings
    wanted: int
    prefers_new: bool = False
    shown: int = 0

    def answer(self, readings: Sequence[Question]) -> Answer | None:
        """The best answers to the question, or to its other reading if it has none; None if it has no word to look for.

        Those that hold every word, if there is a handful; else those that hold any.
        """
        question, *others = readings
        as_it_stands = self._tries(question)
        if not as_it_stands:
            return None
        if self._is_for_messages(as_it_stands[0]):
            # To rank hundreds of summaries takes a third of the time.
            of_messages = replace(self, reach=self.reach.without(SUMMARIES), shown=0).answer(readings)
            if of_messages is not None and self._leaves_no_place(of_messages):
                return of_messages
        tries = [*as_it_stands, *(each for other in others for each in self._tries(other))]
        dates = dates_in(question.text)
        most, given = _RANKED + self.wanted, _PROMISING + 3 * self.wanted
        # What is new comes up from far behind: then it is chosen from as many, whatever it is.
        rows = Lookup(self.reach, most, most if self.prefers_new else given, dated=bool(dates))
        looked = rows.tried(tries)
        if len(looked) > len(as_it_stands) and not any(each.hits for each in looked[-1]):
            looked = looked[: len(as_it_stands)]
        tried = tries[len(looked) - 1]
        answer = _Search(tried.question, rows, given, self.prefers_new).ranked(looked[-1], tried.how, dates)
        if tried.question is not question:
            phrases = tuple(f'"{term.text}"' for term in question.terms if term.is_phrase)
            answer = replace(answer, relaxed=True, dropped=phrases + answer.dropped)
        return replace(answer, at=self.meanings.at)

    def _is_for_messages(self, first: Try) -> bool:
        """Whether messages alone probably fill what is shown: one word, and common."""
        how, is_of_both = first.how, self.reach.tables == (MESSAGES, SUMMARIES)
        is_one_word = how.is_one_word and len(how.terms) == 1 and first.is_in_context
        if not (self.shown and is_one_word and is_of_both) or self.prefers_new:
            return False
        return how.expected.get(how.lexemes[0], 0.0) >= _MANY_TIMES * self.shown

    def _leaves_no_place(self, answer: Answer) -> bool:
        """Whether no summary, whatever it holds of the one word, would be among those that are shown."""
        most = ranking.most_alone(max(answer.lexemes.values()), forms=len(answer.lexemes))
        return len(answer.found) > self.shown and answer.found[self.shown - 1].worth > most

    def _tries(self, question: Question) -> list[Try]:
        """How to look a question up, one way after the other until there is enough; none if there is nothing to."""
        asked = self.meanings.understood(question, self.reach, in_all_forms=True)
        how = asked.how
        if how is None:
            return []
        if question.is_one_word:
            return [Try(question, replace(how, is_one_word=True), enough=1)]
        tries = []
        if not question.is_sentence and len(asked.clauses) > 1:
            # A few words are mostly meant together, and that is also much the cheaper question.
            tries.append(Try(question, how.for_every_clause(), enough=A_HANDFUL))
        by_words = how.for_any_word() if question.is_look_up else None
        if by_words is not None:
            # Whoever looks for paths has no use for all texts with the name of a directory in it.
            tries.append(Try(question, by_words, enough=A_HANDFUL))
        tries.append(Try(question, how, enough=1))
        if len(how.anchors) < len(how.lexemes):
            # What is rare was never said within reach; what is common may have been.
            tries.append(Try(question, how.for_any_lexeme(), enough=1))
        return tries


@dataclass(frozen=True)
class _Search:
    """One question put to one set of rows, and what they gave, to be ranked."""

    question: Question
    rows: Lookup
    # Of so many places of messages it is found out what is worth ranking by all that is known of them.
    most: int
    prefers_new: bool

    @cached_property
    def complete_first(self) -> bool:
        """Whether texts that answer every clause come before all others."""
        return not self.question.is_sentence

    def ranked(self, looked: Sequence[Looked], how: Plan, dates: Dates) -> Answer:
        # Where messages are searched too, a word is as rare in a summary as it is among them.
        text = self.question.text
        weights = Weights(
            looked[0].rarity,
            ranking.names_in(text),
            dates,
            is_sentence=how.is_sentence,
            asks_when=how.is_sentence and asks_when(text),
            in_a_row=len(how.in_a_row),
        )
        complete = sum(hit.is_complete for each in looked for hit in each.hits)
        is_settled = complete >= self._enough(how)
        found: list[Found] = []
        for table, each in zip(self.rows.reach.tables, looked, strict=True):
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
        places = {
            *ranking.best_places(worths, self.most),
            *ranking.best_places({place: worths[place] for place in complete}, self.most),
        }
        if is_settled:
            places &= complete
        if own is not None:
            return [self._hit(own[place], worths[place] + weights.of_its_own(own[place])) for place in places]
        is_one = self.rows.reach.is_one_conversation
        found = []
        for row in self.rows.neighbours(places, asks_when=weights.asks_when):
            place = row.place
            is_complete = place in complete
            is_first = self.complete_first and is_complete
            worth = worths[place] + weights.of_its_own(row)
            order_place = row.seq if is_one else row.id
            found.append(Found(is_first, worth, row.conversation_id, row.seq, str(row.id), is_complete, order_place))
        return found

    def _each(self, hits: Sequence[Hit], weights: Weights, is_settled: bool) -> list[Found]:
        """Every hit by itself; settled, only those that are complete."""
        worth = ranking.by_keywords if self.question.is_look_up else ranking.alone
        return [self._hit(hit, worth(hit, weights)) for hit in hits if hit.is_complete or not is_settled]

    def _hit(self, hit: Hit, worth: float) -> Found:
        name, place, _, _, _, is_complete, order_place, _, _ = hit
        is_first = self.complete_first and is_complete
        # Past the constructor, as a search has hundreds of them.
        values = (is_first, worth, conversation_of(place), seq_of(place), name, is_complete, order_place)
        return tuple.__new__(Found, values)

    def _best(self, found: Sequence[Found], looked: Sequence[Looked], how: Plan, weights: Weights) -> Answer:
        """The best of all: of those that answer every clause, if there is a handful of them, or one of the one word."""
        complete = [each for each in found if each.is_complete]
        relaxed = len(complete) < self._enough(how) and len(found) > len(complete)
        best = found if relaxed else complete
        if self.prefers_new:
            best = [each._replace(worth=self._fresher(each)) for each in best]
        present = {how.lexemes[term] for each in looked for term in each.present if term < len(how.lexemes)}
        meant = [each for clause in how.clauses for each in clause]
        worths = zip(how.lexemes, weights.rarity, strict=False)
        return Answer(
            found=tuple(sorted(best, reverse=True)),
            is_cut=any(each.is_cut for each in looked),
            lexemes={form: worth for each, worth in worths for form in how.found_as(each)},
            relaxed=relaxed,
            bounded=how.is_bounded or any(each.is_bounded for each in looked),
            used=tuple(dict.fromkeys(each.term.text for each in meant if not present.isdisjoint(each.lexemes))),
            dropped=tuple(dict.fromkeys(each.term.text for each in meant if present.isdisjoint(each.lexemes))),
        )

    def _fresher(self, found: Found) -> float:
        newest = self.rows.reach.newest
        return ranking.fresher(found.worth, age=newest - found.order_place, oldest=newest)

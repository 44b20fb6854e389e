"""Finds the messages and summaries that answer a question, best first. Quality and cost: `make eval`, `make bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from conversations.scope import Scope
from retrieval import lookup, ranking
from retrieval.lookup import MESSAGES, SUMMARIES, Looked, Lookup
from retrieval.query import Question, loosened, parse
from retrieval.query_dates import dates_in
from retrieval.query_plan import Plan, plan
from retrieval.ranking import Hit, Weights, conversation_of, seq_of
from retrieval.types import GrepScope

# Fewer texts than this with every word in them, and those with any of the words are given too.
A_HANDFUL = 5
# Beyond as many as are asked for: the hits that are ranked with their neighbours, and the places that are looked at
# again with all that is known of them.
_RANKED, _PROMISING = 380, 150


@dataclass(frozen=True)
class Found:
    """One answer: a message by its number or a summary by its id, and what it is worth beside the others."""

    id: int | str
    conversation_id: int
    seq: int
    worth: float
    # Whether it answers every clause of the question.
    is_complete: bool = False


@dataclass(frozen=True)
class Answer:
    """The answers, best first, and how the question was understood. `lexemes`: what to show of them, and its worth."""

    found: tuple[Found, ...]
    lexemes: Mapping[str, float]
    relaxed: bool = False
    bounded: bool = False
    used: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class FullText:
    """Full text search over one conversation, or over all that the scope may see. Call it within `limits.bounded`."""

    scope: Scope

    def answer(self, *, query: str, where: GrepScope, conversation_id: int | None, limit: int) -> Answer | None:
        """The best `limit` answers; None if the query has no word that full text search could look for."""
        question = parse(query)
        rows = Lookup(self.scope, conversation_id)
        answer = _answer(question, rows, where, limit)
        if answer is not None and not answer.found and any(term.is_phrase for term in question.terms):
            freely = _answer(loosened(question), rows, where, limit)
            if freely is not None and freely.found:
                phrases = tuple(f'"{term.text}"' for term in question.terms if term.is_phrase)
                return replace(freely, relaxed=True, dropped=phrases + freely.dropped)
        return answer


def _answer(question: Question, rows: Lookup, where: GrepScope, limit: int) -> Answer | None:
    """The answers that hold every word, if there is a handful; else those that hold any."""
    size = rows.size()
    clauses, excluded = lookup.meanings(question)
    how = plan(
        clauses,
        excluded,
        frequencies=lookup.frequencies(clauses),
        rows=size,
        in_pairs=not question.is_sentence,
    )
    if how is None:
        return None
    search = _Search(question, rows, where, limit, size)
    if question.is_one_word:
        return search.run(replace(how, is_one_word=True))
    if not question.is_sentence and len(clauses) > 1:
        # A few words are mostly meant together, and that is also much the cheaper question.
        answer = search.run(how.for_every_clause())
        if len(answer.found) >= min(A_HANDFUL, limit):
            return answer
    return search.run(how)


@dataclass(frozen=True)
class _Search:
    """One question put to one set of rows."""

    question: Question
    rows: Lookup
    where: GrepScope
    limit: int
    size: int

    def run(self, how: Plan) -> Answer:
        by_length = not self.question.is_look_up
        weights = Weights((), ranking.names_in(self.question.text), dates_in(self.question.text))
        looked: list[Looked] = []
        found: list[Found] = []
        if self.where is not GrepScope.SUMMARIES:
            looked.append(self.rows.hits(MESSAGES, how, size=self.size, most=_RANKED + self.limit, by_length=by_length))
            weights = replace(weights, rarity=looked[-1].rarity)
            found += self._messages(looked[-1].hits, weights, how)
        if self.where is not GrepScope.MESSAGES:
            looked.append(self.rows.hits(SUMMARIES, how, size=self.size, most=self.limit, by_length=by_length))
            # Where messages are searched too, a word is as rare in a summary as it is among them.
            weights = weights if weights.rarity else replace(weights, rarity=looked[-1].rarity)
            found += self._each(looked[-1].hits, weights)
        return self._best(found, looked, how, weights)

    def _messages(self, hits: Sequence[Hit], weights: Weights, how: Plan) -> list[Found]:
        """Messages, and those beside them, by what they are worth where they stand."""
        if self.question.is_look_up:
            return self._each(hits, weights)
        worths = ranking.in_context(hits, weights)
        complete = {hit.place for hit in hits if hit.is_complete}
        if not how.takes_neighbours:
            own = {hit.place for hit in hits}
            worths = {place: worth for place, worth in worths.items() if place in own}
        most = 3 * self.limit + _PROMISING
        places = {
            *ranking.best_places(worths, most),
            *ranking.best_places({place: worths[place] for place in complete}, most),
        }
        return [
            Found(
                row.id,
                row.conversation_id,
                row.seq,
                ranking.finished(worths[row.place], row, weights),
                is_complete=row.place in complete,
            )
            for row in lookup.neighbours(places)
        ]

    def _each(self, hits: Sequence[Hit], weights: Weights) -> list[Found]:
        """Every hit by itself."""
        worth = ranking.by_keywords if self.question.is_look_up else ranking.alone
        return [
            Found(
                hit.id,
                conversation_of(hit.place),
                seq_of(hit.place),
                worth(hit, weights),
                is_complete=hit.is_complete,
            )
            for hit in hits
        ]

    def _best(self, found: Sequence[Found], looked: Sequence[Looked], how: Plan, weights: Weights) -> Answer:
        """The best of all: of those that answer every clause, if there is a handful of them, or one of the one word."""
        complete = [each for each in found if each.is_complete]
        enough = 1 if how.is_one_word else A_HANDFUL
        relaxed = len(complete) < enough and len(found) > len(complete)
        complete_first = not self.question.is_sentence
        best = sorted(
            found if relaxed else complete,
            key=lambda each: (complete_first and each.is_complete, each.worth, each.conversation_id, each.seq),
            reverse=True,
        )
        present = {
            how.lexemes[term] for each in looked for hit in each.hits for term in hit.shares if term < len(how.lexemes)
        }
        meant = [each for clause in how.clauses for each in clause]
        return Answer(
            found=tuple(best[: self.limit]),
            lexemes=dict(zip(how.lexemes, weights.rarity, strict=False)),
            relaxed=relaxed,
            bounded=how.is_bounded or any(each.is_cut for each in looked),
            used=tuple(dict.fromkeys(each.term.text for each in meant if not present.isdisjoint(each.lexemes))),
            dropped=tuple(dict.fromkeys(each.term.text for each in meant if present.isdisjoint(each.lexemes))),
        )

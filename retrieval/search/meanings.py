"""What the words of a question mean to the index, and how common it knows them to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from retrieval.search.filters import Reach
from retrieval.search.query import word_statistics as statistics
from retrieval.search.query.compiled_query import Plan, plan
from retrieval.search.query.lexemes import Meaning
from retrieval.search.query.parser import Question
from retrieval.search.query.word_statistics import Statistics
from retrieval.search.vocabulary import Asked, Asking


@dataclass(frozen=True)
class Understood:
    """A question's clauses and exclusions as the index knows them, and how to look them up; no plan if nothing can be.

    A clause of stop words alone is none.
    """

    question: Question
    clauses: list[list[Meaning]]
    how: Plan | None


@dataclass(frozen=True)
class Meanings:
    """What the terms of questions mean, and the moment when that was asked."""

    known: Mapping[Asked, Meaning]
    at: datetime | None = None
    counted: Statistics = field(default_factory=Statistics)

    @classmethod
    def told(cls, asking: Asking, told: Sequence[tuple[Any, ...]]) -> Meanings:
        """By the rows that were told of what was asked."""
        if not asking.terms:
            return cls({})
        at, *counted = told[0][: asking.of_statistics]
        new = asking.made([row[asking.of_statistics :] for row in told]) if asking.new else {}
        return cls({**asking.kept, **new}, at, statistics.told(counted, asking.counts))

    def understood(self, question: Question, reach: Reach, *, in_all_forms: bool = False) -> Understood:
        """The question, one of those that were asked about, to be looked up within reach.

        `in_all_forms`: a sentence finds its words in other forms, too. Whoever types a few words means these.
        """
        clauses = [[self.known[term, False] for term in clause] for clause in question.clauses]
        with_lexemes = [[each for each in clause if each.lexemes] for clause in clauses]
        spoken_of = [clause for clause in with_lexemes if clause]
        how = plan(
            spoken_of,
            [each for each in (self.known[term, True] for term in question.excluded) if each.query],
            frequencies=self.counted.frequencies,
            rows=reach.rows,
            everywhere=self.counted.messages,
            of_one=reach.rows if reach.is_all_of_one_conversation else None,
            is_sentence=question.is_sentence,
            in_all_forms=in_all_forms and question.is_sentence,
        )
        return Understood(question, spoken_of, how)

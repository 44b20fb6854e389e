"""What the words of a question mean to the index, and how common it knows them to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any

from conversations.reading import texts
from retrieval.search import statistics
from retrieval.search.query import Question, Term
from retrieval.search.query_plan import Plan, plan
from retrieval.search.reach import Reach
from retrieval.search.statistics import Statistics
from retrieval.search.terms import Meaning, meaning
from retrieval.search.word_forms import other_forms

# The terms of `%(terms)s` as the index has them, one row for each. With the offsets, what is asked for more than
# once is worked out once.
LEXED = """
    asked AS (
        SELECT place, term, is_phrase, is_excluded, forms, words, lcm_compound_parts(words) AS parts
        FROM (
            SELECT *, lcm_bigrams(lcm_fold(term)) AS words
            FROM unnest(%(terms)s::text[], %(phrases)s::boolean[], %(exclusions)s::boolean[], %(forms)s::text[])
                 WITH ORDINALITY AS given(term, is_phrase, is_excluded, forms, place)
            OFFSET 0
        ) AS folded
        OFFSET 0
    ), lexed AS MATERIALIZED (
        SELECT place,
               tsvector_to_array(to_tsvector('pg_catalog.english', words)) AS whole,
               tsvector_to_array(to_tsvector('pg_catalog.english', parts)) AS parts,
               tsvector_to_array(to_tsvector('pg_catalog.english', forms)) AS forms,
               CASE WHEN NOT %(ranks)s OR is_phrase OR is_excluded OR parts = '' THEN ''
                    ELSE lcm_tsquery(ltrim(term, '-'))::text END AS in_a_row,
               CASE WHEN is_phrase THEN lcm_tsquery('"' || term || '"')::text
                    WHEN is_excluded THEN lcm_tsquery(term)::text
                    ELSE '' END AS query
        FROM asked
    )
"""
# A term, and whether it is to be left out.
_Asked = tuple[Term, bool]
_place = itemgetter(0)


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

    known: Mapping[_Asked, Meaning]
    at: datetime | None = None
    counted: Statistics = field(default_factory=Statistics)

    @classmethod
    def told(
        cls, terms: Sequence[_Asked], told: Sequence[tuple[Any, ...]], before: statistics.Known | None
    ) -> Meanings:
        """By the rows that `told_of` gives of these terms, to whoever knew these statistics before."""
        if not terms:
            return cls({})
        told = sorted(told, key=_place)
        known = {
            (term, is_excluded): meaning(term, whole=whole, parts=parts, query=query, forms=forms, in_a_row=in_a_row)
            for (term, is_excluded), (_, whole, parts, forms, in_a_row, query, *_) in zip(terms, told, strict=True)
        }
        at, *counted = told[0][6:]
        return cls(known, at, statistics.told(counted, before))

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


def told_of(*, is_known: bool) -> str:
    """The columns that tell what terms mean; with the first come the moment and the statistics, as far as not known."""
    counted = statistics.TOLD if is_known else statistics.TOLD_WITH_COUNTS
    of_first = ", ".join(f"CASE WHEN place = 1 THEN ({each}) END" for each in ("now()", *counted))
    return f"place, whole, parts, forms, in_a_row, query, {of_first}"


def terms_of(questions: Iterable[Question]) -> tuple[_Asked, ...]:
    """What is to be asked about, each once."""
    return tuple(
        dict.fromkeys(
            (term, is_excluded)
            for question in questions
            for is_excluded, terms in ((False, question.terms), (True, question.excluded))
            for term in terms
        )
    )


def values_of(terms: Sequence[_Asked], *, ranks: bool) -> dict[str, Any]:
    """The values for `LEXED` and `told_of`. `ranks`: texts are ranked by whether compounds stand in them in a row."""
    return {
        **statistics.values(),
        "ranks": ranks,
        "terms": texts(term.text for term, _ in terms),
        "phrases": texts(str(term.is_phrase) for term, _ in terms),
        "exclusions": texts(str(is_excluded) for _, is_excluded in terms),
        "forms": texts(" ".join(other_forms(term.text)) for term, _ in terms),
    }

"""What words come to in the index for words: the database is asked about each only once a process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

from conversations.sql import texts
from retrieval.search.query import word_statistics as statistics
from retrieval.search.query.lexemes import Meaning, meaning
from retrieval.search.query.parser import Question, Term
from retrieval.search.query.word_forms import other_forms

# A term, and whether it is to be left out.
Asked = tuple[Term, bool]
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
# The columns of it, as `meaning` takes them.
_OF_TERM = "place, whole, parts, forms, in_a_row, query"
_place = itemgetter(0)
# What a word comes to is the same as long as LCM's functions for the index are, and people ask for the same words again
# and again: a process is told once, by the database and whether it was told as far as to rank by it. Longer ones than
# nearly any identifier are asked about each time.
_MOST_KEPT, _LONGEST_KEPT = 10_000, 100
_KEPT: dict[tuple[str, bool, Asked], Meaning] = {}


def terms_of(questions: Iterable[Question]) -> tuple[Asked, ...]:
    """What is to be asked about, each once."""
    return tuple(
        dict.fromkeys(
            (term, is_excluded)
            for question in questions
            for is_excluded, terms in ((False, question.terms), (True, question.excluded))
            for term in terms
        )
    )


@dataclass(frozen=True)
class Asking:
    """What the first question of a search asks about these terms. `ranks`: as far as to rank by them."""

    terms: Sequence[Asked]
    ranks: bool
    # What this process was told before.
    counts: statistics.Known | None
    kept: Mapping[Asked, Meaning]

    @classmethod
    def about(cls, terms: Sequence[Asked], *, ranks: bool) -> Asking:
        if not terms:
            return cls((), ranks, None, {})
        database = statistics.database()
        found = ((term, _KEPT.get((database, ranks, term))) for term in terms)
        return cls(terms, ranks, statistics.known(), {term: kept for term, kept in found if kept is not None})

    @cached_property
    def new(self) -> tuple[Asked, ...]:
        return tuple(term for term in self.terms if term not in self.kept)

    @property
    def columns(self) -> str:
        """What is told: the moment, the statistics as far as they are not known, and what each new term means."""
        counted = ", ".join(f"({each})" for each in self._counted)
        return f"now(), {counted}, {_OF_TERM}" if self.new else f"now(), {counted}"

    @property
    def of_statistics(self) -> int:
        """How many of the columns are not about a term."""
        return 1 + len(self._counted)

    @property
    def _counted(self) -> Sequence[str]:
        return statistics.TOLD if self.counts is not None else statistics.TOLD_WITH_COUNTS

    @property
    def values(self) -> dict[str, Any]:
        """The values for `LEXED` and `columns`."""
        if not self.new:
            return statistics.values()
        return {
            **statistics.values(),
            "ranks": self.ranks,
            "terms": texts(term.text for term, _ in self.new),
            "phrases": texts(str(term.is_phrase) for term, _ in self.new),
            "exclusions": texts(str(is_excluded) for _, is_excluded in self.new),
            "forms": texts(" ".join(other_forms(term.text)) for term, _ in self.new),
        }

    def made(self, told: Sequence[tuple[Any, ...]]) -> dict[Asked, Meaning]:
        """What the new terms mean, by their rows; which is kept."""
        made = {
            (term, is_excluded): meaning(term, whole=whole, parts=parts, query=query, forms=forms, in_a_row=in_a_row)
            for (term, is_excluded), (_, whole, parts, forms, in_a_row, query) in zip(
                self.new, sorted(told, key=_place), strict=True
            )
        }
        if len(_KEPT) >= _MOST_KEPT:
            _KEPT.clear()
        database = statistics.database()
        _KEPT.update(
            ((database, self.ranks, each), means) for each, means in made.items() if len(each[0].text) <= _LONGEST_KEPT
        )
        return made

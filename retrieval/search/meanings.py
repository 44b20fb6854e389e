"""What the words of a question mean to the index, and how common it knows them to be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from conversations.reading import rows
from retrieval.search.query import Question
from retrieval.search.query_plan import Meaning, meaning

# The statistics come with the first term, as one more question would take longer than they do. PostgreSQL has them as
# two long arrays, which are read once (hence the offset) and not taken apart.
_LEXED = """
    WITH asked AS (
        SELECT place, term, is_phrase, is_excluded, lcm_bigrams(lcm_fold(term)) AS words
        FROM unnest(%s::text[], %s::boolean[], %s::boolean[])
             WITH ORDINALITY AS given(term, is_phrase, is_excluded, place)
    ), lexed AS MATERIALIZED (
        SELECT place,
               tsvector_to_array(to_tsvector('pg_catalog.english', words)) AS whole,
               tsvector_to_array(to_tsvector('pg_catalog.english', lcm_compound_parts(words))) AS parts,
               CASE WHEN is_phrase THEN lcm_tsquery('"' || term || '"')::text
                    WHEN is_excluded THEN lcm_tsquery(term)::text
                    ELSE '' END AS query
        FROM asked
    )
    SELECT whole, parts, query, now(),
           CASE WHEN place = 1 THEN (
               SELECT reltuples::float8 FROM pg_class WHERE oid = to_regclass('messages')
           ) END,
           CASE WHEN place = 1 THEN (
               SELECT json_object_agg(lexeme, frequencies[array_position(common, lexeme)])
               FROM (
                   SELECT most_common_elems::text::text[] AS common, most_common_elem_freqs AS frequencies
                   FROM pg_stats
                   WHERE schemaname = ANY(current_schemas(false)) AND tablename = 'messages'
                     AND attname = 'content_tsv'
                   OFFSET 0
               ) AS counted, (SELECT unnest(whole || parts) FROM lexed) AS sought(lexeme)
               WHERE lexeme = ANY(common)
           )::text END
    FROM lexed ORDER BY place
"""


@dataclass(frozen=True)
class Statistics:
    """What PostgreSQL has counted: about how many messages there are, and which share of them holds a lexeme.

    Only lexemes that are common enough to be counted are told. Before anything was counted, `messages` is below 0.
    """

    messages: float = -1
    frequencies: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Understood:
    """A question's clauses and exclusions as the index knows them, and the moment when that was asked."""

    clauses: list[list[Meaning]]
    excluded: list[Meaning]
    at: datetime | None = None
    statistics: Statistics = field(default_factory=Statistics)


def meanings(question: Question) -> Understood:
    """What the question means to the index; a clause of stop words alone is none."""
    terms = [*question.terms, *question.excluded]
    if not terms:
        return Understood([], [])
    excluded_from = len(question.terms)
    texts = [term.text for term in terms]
    kinds = [term.is_phrase for term in terms], [place >= excluded_from for place in range(len(terms))]
    told = rows(_LEXED, [texts, *kinds])
    known = [
        meaning(term, whole=whole, parts=parts, query=query)
        for term, (whole, parts, query, *_) in zip(terms, told, strict=True)
    ]
    of_terms = iter(known[:excluded_from])
    clauses = [[next(of_terms) for _ in clause] for clause in question.clauses]
    with_lexemes = [[each for each in clause if each.lexemes] for clause in clauses]
    return Understood(
        [clause for clause in with_lexemes if clause],
        [each for each in known[excluded_from:] if each.query],
        at=told[0][3],
        statistics=Statistics(told[0][4], json.loads(told[0][5] or "{}")),
    )

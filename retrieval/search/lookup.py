"""What full text search asks the database: the lexemes of a question, and the rows that hold them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from conversations.reading import rows
from retrieval.search import ranking
from retrieval.search.query import Question
from retrieval.search.query_plan import MOST_CANDIDATES, Meaning, Plan, lexeme_query, meaning
from retrieval.search.ranking import Hit, Neighbour, Place, conversation_of, place_of, seq_of
from retrieval.search.reach import Reach
from retrieval.search.tables import MESSAGES, Table

# What statistics do not foresee, no search looks at.
_MOST_ROWS = 50_000

_LEXED = """
    WITH asked AS (
        SELECT place, term, is_phrase, is_excluded, lcm_bigrams(lcm_fold(term)) AS words
        FROM unnest(%s::text[], %s::boolean[], %s::boolean[])
             WITH ORDINALITY AS given(term, is_phrase, is_excluded, place)
    )
    SELECT tsvector_to_array(to_tsvector('pg_catalog.english', words)),
           tsvector_to_array(to_tsvector('pg_catalog.english', lcm_compound_parts(words))),
           CASE WHEN is_phrase THEN lcm_tsquery('"' || term || '"')::text
                WHEN is_excluded THEN lcm_tsquery(term)::text
                ELSE '' END,
           now()
    FROM asked ORDER BY place
"""
_FREQUENCIES = """
    SELECT lexeme, frequency
    FROM pg_stats, unnest(most_common_elems::text::text[], most_common_elem_freqs) AS common(lexeme, frequency)
    WHERE schemaname = ANY(current_schemas(false)) AND tablename = 'messages' AND attname = 'content_tsv'
      AND lexeme = ANY(%s)
"""
# A lexeme's ts_rank saturates with its number: a message that says it twice holds 1.25 times as much as one that says
# it once. How rare a lexeme is comes from the candidates themselves, which are all the rows that have an anchor. A
# large tsvector is fetched and unpacked by each function that is given it: first it is cut down to what is asked for.
# Whatever is counted is materialized, as it would be counted anew for each row where few rows are foreseen.
_HITS = """
    WITH {matching} hits AS MATERIALIZED (
        SELECT id, conversation_id, seq, token_count, order_place, place, {shares}
        FROM (
            SELECT {id} AS id, conversation_id, {seq} AS seq, {tokens} AS token_count, {order_place} AS order_place,
                   ctid AS place, {vector} AS vector
            FROM {table}
            WHERE {where} AND {tsv} @@ %(query)s::tsquery
            LIMIT %(most_rows)s
        ) AS holding
    ), counts AS MATERIALIZED (
        SELECT count(*) AS looked_at, {counts} FROM hits
    ), rarities AS MATERIALIZED (
        SELECT looked_at, {rarities} FROM counts
    ), best AS (
        SELECT hits.*, looked_at, ARRAY[{rarity_columns}] AS rarity
        FROM hits, rarities
        ORDER BY ({worth}) / {length_cost} DESC, id DESC
        LIMIT %(most)s
    )
    SELECT id, conversation_id, seq, ARRAY[{share_columns}], token_count, rarity, looked_at, order_place,
           {asks} FROM best
"""
# The newest of those that are picked, of which nobody foresees how many there are. Materialized, so that the index for
# words finds them: for the order, the planner would walk through all messages.
_MATCHING = """matching AS MATERIALIZED (
        SELECT ctid AS row, {order_place} AS order_place FROM {table} WHERE {where} AND {tsv} @@ %(query)s::tsquery
    ),"""
_NEWEST = "ctid = ANY(ARRAY(SELECT row FROM matching ORDER BY order_place DESC LIMIT %(most_candidates)s))"
_RARITY = "ln(1 + greatest(0, %(size)s::float8 - d{n} + 0.5::float8) / (d{n} + 0.5::float8)) AS w{n}"
_CUT_DOWN = "ts_filter(setweight({tsv}, 'A', %(lexemes)s::text[]), '{{a}}')"
_SHARE = "ts_rank('{{1,1,1,1}}', vector, %(term{n})s::tsquery) AS r{n}"
_PAIR_SHARE = "CASE WHEN vector @@ %(term{n})s::tsquery THEN 1.0 ELSE 0 END AS r{n}"
_NEIGHBOURS = """
    SELECT message_id, conversation_id, seq, token_count, {created_at}, author
    FROM unnest(%(conversations)s::bigint[], %(seqs)s::bigint[]) AS near(conversation_id, seq)
         JOIN messages USING (conversation_id, seq)
    WHERE {where}
"""


@dataclass(frozen=True)
class Looked:
    """The best hits of a table by themselves, how rare each lexeme is, and whether there were too many to look at."""

    hits: tuple[Hit, ...]
    rarity: tuple[float, ...]
    is_cut: bool = False


@dataclass(frozen=True)
class Lookup:
    """The rows within reach."""

    reach: Reach

    def hits(self, table: Table, how: Plan, *, most: int, by_length: bool) -> Looked:
        """The rows that answer the plan's query, the best of them by their own words."""
        terms = (*map(lexeme_query, how.lexemes), *how.pairs)
        places = range(len(terms))
        # A prefix is no lexeme that the vector could be cut down to.
        is_cut_down = len(terms) > 1 and not any(term.endswith(":*") for term in terms)
        size = self.reach.rows
        where, values, matching = self._where(table, how)
        statement = _HITS.format(
            id=table.id,
            seq=table.seq,
            table=table.name,
            tokens=table.tokens,
            order_place=self.reach.place(table),
            where=where,
            tsv=table.vector,
            matching=matching,
            asks=table.asks,
            vector=_CUT_DOWN.format(tsv=table.vector) if is_cut_down else table.vector,
            shares=", ".join((_SHARE if n < len(how.lexemes) else _PAIR_SHARE).format(n=n) for n in places),
            counts=", ".join(
                f"greatest(count(*) FILTER (WHERE r{n} > 0), %(expected{n})s::float8) AS d{n}" for n in places
            ),
            rarities=", ".join(_RARITY.format(n=n) for n in places),
            rarity_columns=", ".join(f"w{n}" for n in places),
            share_columns=", ".join(f"r{n}" for n in places),
            worth=" + ".join(f"r{n} * w{n}" for n in places),
            length_cost=ranking.LENGTH_COST_SQL if by_length else "1",
        )
        values |= {"query": how.query, "lexemes": list(how.lexemes), "size": float(size)}
        values |= {"most": most, "most_rows": _MOST_ROWS, "most_candidates": MOST_CANDIDATES}
        values |= {f"term{n}": term for n, term in enumerate(terms)}
        values |= {f"expected{n}": how.expected_of(n) for n in places}
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            fetched = cursor.fetchall()
        if not fetched:
            return Looked((), (ranking.rarity(found=0, among=size),) * len(terms))
        return Looked(_hits(fetched, how), tuple(fetched[0][5]), is_cut=fetched[0][6] >= _MOST_ROWS)

    def neighbours(self, places: Collection[Place], *, dated: bool) -> list[Neighbour]:
        """The messages at these places, if they are within reach; some places are beyond a conversation's end."""
        if not places:
            return []
        reach = self.reach
        statement = _NEIGHBOURS.format(
            where=reach.where(MESSAGES) if reach.is_narrowed else "true",
            # Thousands of dates take a while to read.
            created_at="created_at" if dated else "NULL",
        )
        near = {
            "conversations": [conversation_of(place) for place in places],
            "seqs": [seq_of(place) for place in places],
        }
        return [Neighbour(*row) for row in rows(statement, {**reach.values, **near} if reach.is_narrowed else near)]

    def _where(self, table: Table, how: Plan) -> tuple[str, dict[str, Any], str]:
        """The condition for the rows to search, for the newest if the plan expects too many; what comes before it."""
        reach = self.reach
        condition, values = reach.where(table), dict(reach.values)
        if how.newest >= 1 or table is not MESSAGES:
            return condition, values, ""
        if reach.picks_among_messages:
            place = reach.place(table)
            matching = _MATCHING.format(order_place=place, table=table.name, where=condition, tsv=table.vector)
            return _NEWEST, values, matching
        values["after"] = reach.high - int(how.newest * (reach.high - reach.low))
        return f"{condition} AND {reach.place(table)} > %(after)s", values, ""


@dataclass(frozen=True)
class Understood:
    """A question's clauses and exclusions as the index knows them, and the moment when that was asked."""

    clauses: list[list[Meaning]]
    excluded: list[Meaning]
    at: datetime | None = None


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
        for term, (whole, parts, query, _) in zip(terms, told, strict=True)
    ]
    of_terms = iter(known[:excluded_from])
    clauses = [[next(of_terms) for _ in clause] for clause in question.clauses]
    with_lexemes = [[each for each in clause if each.lexemes] for clause in clauses]
    return Understood(
        [clause for clause in with_lexemes if clause],
        [each for each in known[excluded_from:] if each.query],
        at=told[0][3],
    )


def frequencies(clauses: Sequence[Sequence[Meaning]]) -> Mapping[str, float]:
    """The share of all messages that hold a lexeme, for those so common that the statistics know them."""
    wanted = [lexeme for clause in clauses for each in clause for lexeme in each.lexemes]
    return dict(rows(_FREQUENCIES, [wanted])) if wanted else {}


def _hits(fetched: Sequence[tuple[Any, ...]], how: Plan) -> tuple[Hit, ...]:
    answers: dict[tuple[int, ...], bool] = {}
    hits = []
    for item_id, conversation_id, seq, held, tokens, _, _, order_place, asks in fetched:
        shares = {term: share for term, share in enumerate(held) if share > 0}
        # Hundreds of rows hold the same few combinations of words.
        combination = tuple(shares)
        if combination not in answers:
            answers[combination] = how.is_answered_by(combination)
        hits.append(
            Hit(
                item_id,
                place_of(conversation_id, seq),
                shares,
                tokens,
                bool(asks),
                is_complete=answers[combination],
                order_place=order_place,
            )
        )
    return tuple(hits)

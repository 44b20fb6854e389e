"""Finds the messages and summaries that answer a question, best first. Quality and cost: `make eval`, `make bench`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Sum
from django.db.models.functions import Coalesce

from conversations.models import Conversation
from conversations.reading import rows
from conversations.scope import Scope
from retrieval import ranking
from retrieval.query import Question, loosened, parse
from retrieval.query_dates import dates_in
from retrieval.query_plan import Meaning, Plan, answers_all, lexeme_query, meaning, plan
from retrieval.ranking import Hit, Neighbour, Place, Weights
from retrieval.types import GrepScope

# Fewer texts than this with every word in them, and those with any of the words are given too.
A_HANDFUL = 5
# The hits that are ranked with their neighbours; the places that are looked at again with all that is known of them.
_RANKED, _PROMISING = 400, 150
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
                ELSE '' END
    FROM asked ORDER BY place
"""
_FREQUENCIES = """
    SELECT lexeme, frequency
    FROM pg_stats, unnest(most_common_elems::text::text[], most_common_elem_freqs) AS common(lexeme, frequency)
    WHERE schemaname = ANY(current_schemas(false)) AND tablename = 'messages' AND attname = 'content_tsv'
      AND lexeme = ANY(%s)
"""
# A lexeme's ts_rank saturates with its number: a message that says it twice holds 1.25 times as much as one that says
# it once. How rare a lexeme is comes from the candidates themselves, which are all the rows that have an anchor.
_HITS = """
    WITH hits AS MATERIALIZED (
        SELECT {id} AS id, {seq} AS seq, conversation_id, length(content_tsv) AS size, {asks} AS asks, {shares}
        FROM {table}
        WHERE {where} AND content_tsv @@ %s::tsquery
        LIMIT {most_rows}
    ), counts AS (
        SELECT count(*) AS looked_at, {counts} FROM hits
    ), rarities AS (
        SELECT looked_at, {rarities} FROM counts
    )
    SELECT id, conversation_id, seq, ARRAY[{columns}], size, asks, ARRAY[{rarity_columns}], looked_at
    FROM hits, rarities
    ORDER BY ({worth}) / {length_cost} DESC, id DESC
    LIMIT {most}
"""
_SHARE = "ts_rank('{{1,1,1,1}}', content_tsv, %s::tsquery) AS r{n}"
_PAIR_SHARE = "CASE WHEN content_tsv @@ %s::tsquery THEN 0.6 ELSE 0 END AS r{n}"
_MESSAGES = {
    "table": "messages",
    "id": "message_id",
    "seq": "seq",
    # Of a long text, the last character would have to be fetched and unpacked.
    "asks": "CASE WHEN octet_length(content) < 2000 THEN right(rtrim(content), 1) IN ('?', '？', '؟') ELSE false END",
}
_SUMMARIES = {"table": "summaries", "id": "summary_id", "seq": "first_seq", "asks": "false"}
_ALL_OF = "conversation_id IN (SELECT conversation_id FROM conversations WHERE workspace_id = %s)"
_NEIGHBOURS = """
    SELECT message_id, conversation_id, seq, length(content_tsv), created_at, author
    FROM unnest(%s::bigint[], %s::bigint[]) AS near(conversation_id, seq) JOIN messages USING (conversation_id, seq)
"""


@dataclass(frozen=True)
class Found:
    """One answer: a message by its number or a summary by its id, and what it is worth beside the others."""

    id: int | str
    conversation_id: int
    seq: int
    worth: float


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
class _Looked:
    """What one table had to say."""

    hits: tuple[Hit, ...]
    rarity: tuple[float, ...]
    bounded: bool


@dataclass(frozen=True)
class FullText:
    """Full text search over one conversation, or over all that the scope may see. Call it within `limits.bounded`."""

    scope: Scope

    def answer(self, *, query: str, where: GrepScope, conversation_id: int | None, limit: int) -> Answer | None:
        """The best `limit` answers; None if the query has no word that full text search could look for."""
        question = parse(query)
        answer = self._answer(question, where, conversation_id, limit)
        if answer is not None and not answer.found and any(term.is_phrase for term in question.terms):
            freely = self._answer(loosened(question), where, conversation_id, limit)
            if freely is not None and freely.found:
                phrases = tuple(f'"{term.text}"' for term in question.terms if term.is_phrase)
                return Answer(**{**vars(freely), "relaxed": True, "dropped": phrases + freely.dropped})
        return answer

    def ranked_messages(self, *, query: str, conversation_id: int, limit: int) -> tuple[Found, ...]:
        """The messages of a conversation that answer the query best; none if it has nothing to look for."""
        answer = self.answer(query=query, where=GrepScope.MESSAGES, conversation_id=conversation_id, limit=limit)
        return answer.found if answer is not None else ()

    def _answer(self, question: Question, where: GrepScope, conversation_id: int | None, limit: int) -> Answer | None:
        rows_in_scope = self._rows(conversation_id)
        clauses, excluded = _meanings(question)
        wanted = [lexeme for clause in clauses for each in clause for lexeme in each.lexemes]
        frequencies = dict(rows(_FREQUENCIES, [wanted])) if wanted else {}
        how = plan(clauses, excluded, frequencies=frequencies, rows=rows_in_scope, in_pairs=not question.is_sentence)
        if how is None:
            return None
        weights = Weights((), ranking.names_in(question.text), dates_in(question.text))
        looked: list[_Looked] = []
        found: list[tuple[Found, bool]] = []
        if where is not GrepScope.SUMMARIES:
            messages = self._look(
                how, _MESSAGES, conversation_id, rows_in_scope, clauses, by_length=not question.is_look_up
            )
            weights = Weights(messages.rarity, weights.names, weights.dates)
            looked.append(messages)
            # A neighbour need not hold what every answer must, and may hold what none may.
            with_neighbours = not (how.required or how.excluded)
            found += _ranked(messages.hits, weights, question, limit, with_neighbours=with_neighbours)
        if where is not GrepScope.MESSAGES:
            summaries = self._look(
                how, _SUMMARIES, conversation_id, rows_in_scope, clauses, by_length=not question.is_look_up
            )
            if not weights.rarity:
                weights = Weights(summaries.rarity)
            looked.append(summaries)
            found += _ranked_alone(summaries.hits, weights, question)
        return _chosen(found, looked, how, clauses, weights, limit, complete_first=not question.is_sentence)

    def _rows(self, conversation_id: int | None) -> int:
        """How many messages are searched; NotFound if the scope has no such conversation."""
        if conversation_id is not None:
            return self.scope.conversation(conversation_id).next_seq - 1
        everything = self.scope.narrow(Conversation.objects.all())
        counted = everything.aggregate(rows=Coalesce(Sum("next_seq"), 0))
        return int(counted["rows"])

    def _where(self, conversation_id: int | None) -> tuple[str, list[Any]]:
        if conversation_id is not None:
            return "conversation_id = %s", [conversation_id]
        return ("true", []) if self.scope.workspace_id is None else (_ALL_OF, [self.scope.workspace_id])

    def _look(
        self,
        how: Plan,
        table: Mapping[str, str],
        conversation_id: int | None,
        rows_in_scope: int,
        clauses: Sequence[Sequence[Meaning]],
        *,
        by_length: bool,
    ) -> _Looked:
        where, scope_values = self._where(conversation_id)
        places = range(len(how.lexemes) + len(how.pairs))
        statement = _HITS.format(
            **table,
            where=where,
            most_rows=_MOST_ROWS,
            most=_RANKED,
            shares=", ".join((_SHARE if n < len(how.lexemes) else _PAIR_SHARE).format(n=n) for n in places),
            counts=", ".join(f"greatest(count(*) FILTER (WHERE r{n} > 0), %s::float8) AS d{n}" for n in places),
            rarities=", ".join(f"ln(1 + greatest(0, %s - d{n} + 0.5) / (d{n} + 0.5)) AS w{n}" for n in places),
            columns=", ".join(f"r{n}" for n in places),
            rarity_columns=", ".join(f"w{n}" for n in places),
            worth=" + ".join(f"r{n} * w{n}" for n in places),
            length_cost=f"(1 + 0.5::float8 * ln(greatest(1, size / {ranking.LONG}::float8)))" if by_length else "1",
        )
        values = [
            *(lexeme_query(lexeme) for lexeme in how.lexemes),
            *how.pairs,
            *scope_values,
            how.query,
            *(how.expected.get(lexeme, 0.0) for lexeme in how.lexemes),
            *(0.0 for _ in how.pairs),
            *(rows_in_scope for _ in places),
        ]
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            fetched = cursor.fetchall()
        hits = tuple(_hit(row, how.lexemes, clauses) for row in fetched)
        rarity = tuple(fetched[0][6]) if fetched else (ranking.rarity(found=0, among=rows_in_scope),) * len(places)
        return _Looked(hits, rarity, bounded=bool(fetched) and fetched[0][7] >= _MOST_ROWS)


def _meanings(question: Question) -> tuple[list[list[Meaning]], list[Meaning]]:
    """The question's clauses and exclusions as the index knows them; a clause of stop words alone is none."""
    terms = [*question.terms, *question.excluded]
    if not terms:
        return [], []
    excluded_from = len(question.terms)
    lexed = rows(
        _LEXED,
        [
            [term.text for term in terms],
            [term.is_phrase for term in terms],
            [place >= excluded_from for place in range(len(terms))],
        ],
    )
    known = [
        meaning(term, whole=whole, parts=parts, query=query)
        for term, (whole, parts, query) in zip(terms, lexed, strict=True)
    ]
    of_terms = iter(known[:excluded_from])
    clauses = [[next(of_terms) for _ in clause] for clause in question.clauses]
    with_lexemes = [[each for each in clause if each.lexemes] for clause in clauses]
    return [clause for clause in with_lexemes if clause], [each for each in known[excluded_from:] if each.query]


def _hit(row: tuple[Any, ...], lexemes: Sequence[str], clauses: Sequence[Sequence[Meaning]]) -> Hit:
    shares = {place: share for place, share in enumerate(row[3]) if share > 0}
    return Hit(
        id=row[0],
        conversation_id=row[1],
        seq=row[2],
        shares=shares,
        size=row[4],
        asks=row[5],
        # Phrases are required of every hit: what their lexemes say is enough here.
        is_complete=answers_all(clauses, frozenset(lexemes[place] for place in shares if place < len(lexemes))),
    )


def _ranked(
    hits: Sequence[Hit], weights: Weights, question: Question, limit: int, *, with_neighbours: bool
) -> list[tuple[Found, bool]]:
    """Messages, those near a hit too if neighbours may be answers, each with whether it answers every clause."""
    if question.is_look_up:
        return _ranked_alone(hits, weights, question)
    worths = ranking.in_context(hits, weights)
    complete = {hit.place for hit in hits if hit.is_complete}
    promising = ranking.best_places(worths, 3 * limit + _PROMISING)
    places = complete.union(promising) if with_neighbours else {hit.place for hit in hits}
    return [
        (Found(row.id, *row.place, ranking.finished(worths[row.place], row, weights)), row.place in complete)
        for row in _neighbours(places)
    ]


def _neighbours(places: Collection[Place]) -> list[Neighbour]:
    """The messages at these places; some places are beyond a conversation's end."""
    conversation_ids, seqs = zip(*places, strict=True) if places else ((), ())
    return [Neighbour(*row) for row in rows(_NEIGHBOURS, [list(conversation_ids), list(seqs)])]


def _ranked_alone(hits: Sequence[Hit], weights: Weights, question: Question) -> list[tuple[Found, bool]]:
    worth = ranking.by_keywords if question.is_look_up else ranking.alone
    return [(Found(hit.id, *hit.place, worth(hit, weights)), hit.is_complete) for hit in hits]


def _chosen(
    found: Sequence[tuple[Found, bool]],
    looked: Sequence[_Looked],
    how: Plan,
    clauses: Sequence[Sequence[Meaning]],
    weights: Weights,
    limit: int,
    *,
    complete_first: bool,
) -> Answer:
    """The best of all: of those that answer every clause, if there is a handful of them."""
    complete = [each for each, is_complete in found if is_complete]
    relaxed = len(complete) < A_HANDFUL and len(found) > len(complete)
    candidates = [each for each, _ in found] if relaxed else complete
    first = {each.id for each in complete} if complete_first else set()
    best = sorted(
        candidates, key=lambda each: (each.id in first, each.worth, each.conversation_id, each.seq), reverse=True
    )
    present = {
        how.lexemes[term] for each in looked for hit in each.hits for term in hit.shares if term < len(how.lexemes)
    }
    used = [each for clause in clauses for each in clause if not present.isdisjoint(each.lexemes)]
    missing = [each for clause in clauses for each in clause if present.isdisjoint(each.lexemes)]
    return Answer(
        found=tuple(best[:limit]),
        lexemes=dict(zip(how.lexemes, weights.rarity, strict=False)),
        relaxed=relaxed,
        bounded=how.is_bounded or any(each.bounded for each in looked),
        used=tuple(dict.fromkeys(each.term.text for each in used)),
        dropped=tuple(dict.fromkeys(each.term.text for each in missing)),
    )

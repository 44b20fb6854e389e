"""What full text search asks the database: the lexemes of a question, and the rows that hold them."""

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
from retrieval.query import Question
from retrieval.query_plan import Meaning, Plan, lexeme_query, meaning
from retrieval.ranking import Hit, Neighbour, Place, conversation_of, place_of, seq_of

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
# it once. How rare a lexeme is comes from the candidates themselves, which are all the rows that have an anchor. A
# large tsvector is fetched and unpacked by each function that is given it: first it is cut down to what is asked for.
_HITS = """
    WITH hits AS MATERIALIZED (
        SELECT id, conversation_id, seq, token_count, place, {shares}
        FROM (
            SELECT {id} AS id, conversation_id, {seq} AS seq, token_count, ctid AS place, {vector} AS vector
            FROM {table}
            WHERE {where} AND content_tsv @@ %(query)s::tsquery
            LIMIT %(most_rows)s
        ) AS holding
    ), counts AS (
        SELECT count(*) AS looked_at, {counts} FROM hits
    ), rarities AS (
        SELECT looked_at, {rarities} FROM counts
    ), best AS (
        SELECT hits.*, looked_at, ARRAY[{rarity_columns}] AS rarity
        FROM hits, rarities
        ORDER BY ({worth}) / {length_cost} DESC, id DESC
        LIMIT %(most)s
    )
    SELECT id, conversation_id, seq, ARRAY[{share_columns}], token_count, rarity, looked_at, {asks} FROM best
"""
_RARITY = "ln(1 + greatest(0, %(size)s::float8 - d{n} + 0.5::float8) / (d{n} + 0.5::float8)) AS w{n}"
_CUT_DOWN = "ts_filter(setweight(content_tsv, 'A', %(lexemes)s::text[]), '{{a}}')"
_SHARE = "ts_rank('{{1,1,1,1}}', vector, %(term{n})s::tsquery) AS r{n}"
_PAIR_SHARE = "CASE WHEN vector @@ %(term{n})s::tsquery THEN 1.0 ELSE 0 END AS r{n}"
# Of a long text, the last character would have to be fetched and unpacked.
_ASKS = """(
    SELECT octet_length(content) < 2000 AND right(rtrim(content), 1) IN ('?', '？', '؟')
    FROM messages WHERE ctid = best.place
)"""
_NEIGHBOURS = """
    SELECT message_id, conversation_id, seq, token_count, created_at, author
    FROM unnest(%s::bigint[], %s::bigint[]) AS near(conversation_id, seq) JOIN messages USING (conversation_id, seq)
"""
# Of a summary that was made again, the newer text is found.
NOT_SUPERSEDED = "NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = summaries.summary_id)"
_ALL_OF = "conversation_id IN (SELECT conversation_id FROM conversations WHERE workspace_id = %(workspace_id)s)"


@dataclass(frozen=True)
class Table:
    """Where to look: messages or summaries."""

    name: str
    id: str
    seq: str
    # What tells the newest rows of all conversations, and of one.
    newest: str
    asks: str
    # What a row must be to be searched at all.
    only: str = ""


MESSAGES = Table("messages", id="message_id", seq="seq", newest="message_id", asks=_ASKS)
SUMMARIES = Table("summaries", id="summary_id", seq="first_seq", newest="", asks="false", only=NOT_SUPERSEDED)


@dataclass(frozen=True)
class Looked:
    """The best hits of a table by themselves, how rare each lexeme is, and whether there were too many to look at."""

    hits: tuple[Hit, ...]
    rarity: tuple[float, ...]
    is_cut: bool = False


@dataclass(frozen=True)
class Lookup:
    """The rows of one conversation, or of all that the scope may see."""

    scope: Scope
    conversation_id: int | None

    def size(self) -> int:
        """How many messages there are to search; NotFound if the scope has no such conversation."""
        if self.conversation_id is not None:
            return self.scope.conversation(self.conversation_id).next_seq - 1
        counted = self.scope.narrow(Conversation.objects.all()).aggregate(rows=Coalesce(Sum("next_seq"), 0))
        return int(counted["rows"])

    def hits(self, table: Table, how: Plan, *, size: int, most: int, by_length: bool) -> Looked:
        """The rows that answer the plan's query, the best of them by their own words."""
        terms = (*map(lexeme_query, how.lexemes), *how.pairs)
        places = range(len(terms))
        # A prefix is no lexeme that the vector could be cut down to.
        is_cut_down = len(terms) > 1 and not any(term.endswith(":*") for term in terms)
        where, values = self._where(table, how, size)
        statement = _HITS.format(
            id=table.id,
            seq=table.seq,
            table=table.name,
            where=where,
            asks=table.asks,
            vector=_CUT_DOWN.format() if is_cut_down else "content_tsv",
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
        values |= {"most": most, "most_rows": _MOST_ROWS}
        values |= {f"term{n}": term for n, term in enumerate(terms)}
        values |= {f"expected{n}": how.expected_of(n) for n in places}
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            fetched = cursor.fetchall()
        if not fetched:
            return Looked((), (ranking.rarity(found=0, among=size),) * len(terms))
        return Looked(_hits(fetched, how), tuple(fetched[0][5]), is_cut=fetched[0][6] >= _MOST_ROWS)

    def _where(self, table: Table, how: Plan, size: int) -> tuple[str, dict[str, Any]]:
        """The condition for the rows to search; of a plan that expects too many of them, for the newest."""
        values: dict[str, Any] = {}
        conditions = [table.only] if table.only else []
        if self.conversation_id is not None:
            conditions.append("conversation_id = %(conversation_id)s")
            values["conversation_id"] = self.conversation_id
        elif self.scope.workspace_id is not None:
            conditions.append(_ALL_OF)
            values["workspace_id"] = self.scope.workspace_id
        if how.newest < 1 and table.newest:
            newest = "seq" if self.conversation_id is not None else table.newest
            conditions.append(f"{newest} > %(after)s")
            values["after"] = int((1 - how.newest) * (size if self.conversation_id is not None else _last_message()))
        return " AND ".join(conditions) or "true", values


def _last_message() -> int:
    return int(rows("SELECT coalesce(max(message_id), 0) FROM messages")[0][0])


def meanings(question: Question) -> tuple[list[list[Meaning]], list[Meaning]]:
    """The question's clauses and exclusions as the index knows them; a clause of stop words alone is none."""
    terms = [*question.terms, *question.excluded]
    if not terms:
        return [], []
    excluded_from = len(question.terms)
    texts = [term.text for term in terms]
    kinds = [term.is_phrase for term in terms], [place >= excluded_from for place in range(len(terms))]
    known = [
        meaning(term, whole=whole, parts=parts, query=query)
        for term, (whole, parts, query) in zip(terms, rows(_LEXED, [texts, *kinds]), strict=True)
    ]
    of_terms = iter(known[:excluded_from])
    clauses = [[next(of_terms) for _ in clause] for clause in question.clauses]
    with_lexemes = [[each for each in clause if each.lexemes] for clause in clauses]
    return [clause for clause in with_lexemes if clause], [each for each in known[excluded_from:] if each.query]


def frequencies(clauses: Sequence[Sequence[Meaning]]) -> Mapping[str, float]:
    """The share of all messages that hold a lexeme, for those so common that the statistics know them."""
    wanted = [lexeme for clause in clauses for each in clause for lexeme in each.lexemes]
    return dict(rows(_FREQUENCIES, [wanted])) if wanted else {}


def neighbours(places: Collection[Place]) -> list[Neighbour]:
    """The messages at these places; some places are beyond a conversation's end."""
    found = rows(_NEIGHBOURS, [[conversation_of(place) for place in places], [seq_of(place) for place in places]])
    return [Neighbour(*row) for row in found]


def _hits(fetched: Sequence[tuple[Any, ...]], how: Plan) -> tuple[Hit, ...]:
    answers: dict[tuple[int, ...], bool] = {}
    hits = []
    for item_id, conversation_id, seq, held, tokens, _, _, asks in fetched:
        shares = {term: share for term, share in enumerate(held) if share > 0}
        # Hundreds of rows hold the same few combinations of words.
        combination = tuple(shares)
        if combination not in answers:
            answers[combination] = how.is_answered_by(combination)
        hits.append(
            Hit(item_id, place_of(conversation_id, seq), shares, tokens, bool(asks), is_complete=answers[combination])
        )
    return tuple(hits)

"""The context as it is now, from its own table: whatever an answer needs to know of it, in one look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from conversations.models import Conversation
from conversations.sql import array, rows
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS
from conversations.types import Counters
from retrieval.assembly.candidates import Candidate
from retrieval.assembly.context_slots import AROUND, EXCHANGES, NAMED, REACH, WITHHELD, Look, Sought, look_in
from retrieval.lineage_steps import above_messages

# Of the newest items before an ordinal, at most so many: those that the tokens reach, and a margin behind them. What a
# summary reaches to is looked up for each, for in a join the planner may think a scan of all worth its while.
_PAGE = {
    "newest": """
        SELECT ordinal, token_count, message_id, summary_id,
               sum(token_count) OVER newest_first - token_count AS newer_tokens
        FROM context_items
        WHERE conversation_id = %(id)s AND ordinal < %(before)s
        WINDOW newest_first AS (ORDER BY ordinal DESC ROWS UNBOUNDED PRECEDING)
        ORDER BY ordinal DESC
        LIMIT %(size)s
    """,
    "page": """
        SELECT ordinal, token_count, message_id, summary_id
        FROM newest
        ORDER BY ordinal DESC
        LIMIT %(margin)s + (SELECT count(*) FROM newest WHERE newer_tokens <= %(tokens)s)
    """,
}
# Where the tokens reach all of it, they need not be added up. In order and up to a size, too: else the planner, which
# plans for conversations of any length at once, may think a scan of all contexts worth its while.
_WHOLE = {
    "page": """
        SELECT ordinal, token_count, message_id, summary_id
        FROM context_items
        WHERE conversation_id = %(id)s AND ordinal < %(before)s
        ORDER BY ordinal DESC
        LIMIT %(size)s
    """
}
_SLOTS = """
    SELECT 'raw', array_agg(ordinal), array_agg(token_count), array_agg(message_id), NULL::text[], NULL::bigint[],
           NULL::boolean[]
    FROM page
    WHERE message_id IS NOT NULL
    UNION ALL
    SELECT 'summary', array_agg(ordinal), array_agg(token_count), NULL, array_agg(summary_id),
           array_agg((SELECT s.last_seq FROM summaries s WHERE s.summary_id = page.summary_id)), NULL
    FROM page
    WHERE summary_id IS NOT NULL
"""
# A user's message that only carries tool results is nobody's question.
_BEFORE = """
        SELECT c.ordinal, c.token_count, c.message_id, m.role
        FROM messages m
        JOIN context_items c ON c.message_id = m.message_id
        WHERE m.conversation_id = %(id)s AND m.seq < (SELECT min(ordinal) FROM page) AND m.role = 'system'
        UNION ALL (
            SELECT c.ordinal, c.token_count, c.message_id, m.role
            FROM messages m
            JOIN context_items c ON c.message_id = m.message_id
            WHERE m.conversation_id = %(id)s AND m.role = 'user'
              AND coalesce((
                  SELECT bool_or(p.part_type IN ('text', 'file')) OR NOT bool_or(p.part_type = 'tool')
                  FROM message_parts p WHERE p.message_id = m.message_id
              ), true)
            ORDER BY m.seq DESC
            LIMIT 1
        )
"""
_FROM_BEFORE = """
    SELECT 'before', array_agg(ordinal), array_agg(token_count), array_agg(message_id), NULL, NULL, NULL FROM before
"""
_COUNT_SUMMARIES = """
    SELECT 'summaries', ARRAY[count(*)], NULL, NULL, NULL, NULL, NULL
    FROM context_items WHERE conversation_id = %(id)s AND item_type = 'summary'
"""
# Each is looked up, in the order in which they are given.
_SOUGHT = """
    SELECT m.seq, m.token_count, m.message_id, m.role, given.beside
    FROM unnest(%(sought)s::bigint[], %(beside)s::integer[]) AS given(message_id, beside), LATERAL (
        SELECT seq, token_count + %(overhead)s AS token_count, message_id, role
        FROM messages WHERE messages.message_id = given.message_id
        OFFSET 0
    ) AS m
"""
# Of an exchange that is longer than most, more than one hit is looked around, in vain: so many for that.
_SPARE = 2
# Those that call a tool or answer a call, and are not on the page, in so many places as are looked around in. Of what
# is at the far edge of the page, some may be left out as no whole exchange; that is a stretch of its own.
_AROUND_THESE = """
    SELECT seq
    FROM (
        SELECT seq, dense_rank() OVER (PARTITION BY is_on_page ORDER BY beside) AS place
        FROM (
            SELECT *, message_id IN (SELECT message_id FROM page WHERE message_id IS NOT NULL) AS is_on_page FROM sought
        ) AS marked
        WHERE (NOT is_on_page OR seq < coalesce(
                  (SELECT ordinal FROM page ORDER BY ordinal OFFSET %(doubtful)s LIMIT 1), %(before)s
              ))
          AND (role = 'tool' OR EXISTS (
              SELECT FROM message_parts p
              WHERE p.message_id = marked.message_id AND p.part_type = 'tool' AND p.tool_call_id IS NOT NULL
          ))
    ) AS placed
    WHERE place <= %(places)s
"""
_NEAR = """
    SELECT DISTINCT m.seq, m.token_count, m.message_id, m.role
    FROM around, LATERAL (
        SELECT seq, token_count + %(overhead)s AS token_count, message_id, role
        FROM messages
        WHERE conversation_id = %(id)s AND messages.seq BETWEEN around.seq - %(reach)s AND around.seq + %(reach)s
        OFFSET 0
    ) AS m
"""
# What is raw in a context stands at its own seq.
_RAW_AROUND = """
    SELECT raw.message_id
    FROM {stretches}, LATERAL (
        SELECT c.message_id
        FROM context_items c
        WHERE c.conversation_id = %(id)s AND c.ordinal BETWEEN {first} AND {last} AND c.message_id IS NOT NULL
        OFFSET 0
    ) AS raw
"""
_RECALLED = "array_agg(message_id NOT IN ({raw}))"
_RAW_NEAR = _RAW_AROUND.format(stretches="around", first="around.seq - %(reach)s", last="around.seq + %(reach)s")
_FROM_SOUGHT = f"""
    SELECT 'sought', array_agg(seq), array_agg(token_count), array_agg(message_id), NULL, NULL,
           array_agg(NOT EXISTS (SELECT FROM context_items c WHERE c.message_id = sought.message_id))
    FROM sought
    UNION ALL
    SELECT 'above', array_agg(c.ordinal), array_agg(c.token_count), array_agg(above.message_id),
           array_agg(c.summary_id), array_agg(s.last_seq), NULL
    FROM above
    JOIN context_items c ON c.summary_id = above.summary_id
    JOIN summaries s ON s.summary_id = c.summary_id
    UNION ALL
    SELECT 'around', array_agg(seq), NULL, NULL, NULL, NULL, NULL FROM around
    UNION ALL
    SELECT 'near', array_agg(seq), array_agg(token_count), array_agg(message_id), NULL, NULL,
           {_RECALLED.format(raw=_RAW_NEAR)}
    FROM near
"""
_AROUND = AROUND.format(
    recalled=_RECALLED.format(raw=_RAW_AROUND.format(stretches="given", first="given.first_seq", last="given.last_seq"))
)


@dataclass(frozen=True)
class StoredContext:
    """The context as it is now; with it, `sought` messages are looked up, and what is withheld where something is."""

    conversation_id: int
    counters: Counters
    sought: Sequence[Sought] = ()
    is_withholding: bool = False

    @property
    def moment(self) -> None:
        return None

    def look(self, *, before: int, size: int, tokens: int, margin: int, is_all: bool) -> Look:
        values: dict[str, Any] = {
            "id": self.conversation_id,
            "before": before,
            "size": size,
            "tokens": tokens,
            "margin": margin,
        }
        if self.sought:
            message_ids, beside = zip(*self.sought, strict=True)
            values |= {"sought": array(message_ids), "beside": array(beside), "overhead": MESSAGE_OVERHEAD_TOKENS}
            values |= {"places": EXCHANGES + _SPARE, "reach": REACH, "doubtful": 0 if is_all else 2 * REACH}
        is_raw = self.counters.active_messages == self.counters.message_count
        statement = _statement(
            is_all=is_all,
            counts=not is_all and not is_raw,
            seeks=bool(self.sought),
            withholds=self.is_withholding,
        )
        return look_in(rows(statement, values, binary=True))

    def around(self, windows: Iterable[tuple[int, int]]) -> list[Candidate]:
        firsts, lasts = zip(*windows, strict=True)
        values: dict[str, Any] = {"id": self.conversation_id, "firsts": array(firsts), "lasts": array(lasts)}
        return look_in(rows(_AROUND, {**values, "overhead": MESSAGE_OVERHEAD_TOKENS})).near


def stored_context(conversation: Conversation, *, sought: Sequence[Sought] = ()) -> StoredContext:
    """The context of this conversation, whose row was read in the snapshot in which the context will be."""
    return StoredContext(
        conversation.conversation_id, conversation.counters, sought, is_withholding=bool(conversation.quarantined)
    )


@cache
def _statement(*, is_all: bool, counts: bool, seeks: bool, withholds: bool) -> str:
    """One question for all that is asked for, and nothing else, so that an answer pays for no more than it has."""
    tables = {
        **(_WHOLE if is_all else {**_PAGE, "before": _BEFORE}),
        **({"sought": _SOUGHT, "around": _AROUND_THESE, "near": _NEAR} if seeks else {}),
    }
    named = " UNION ALL ".join(
        ["SELECT message_id, role FROM messages WHERE message_id = ANY(ARRAY(SELECT message_id FROM page))"]
        + [f"SELECT message_id, role FROM {each}" for each in tables if each in ("before", "sought", "near")]
    )
    kinds = [
        _SLOTS,
        *([] if is_all else [_FROM_BEFORE]),
        *([_COUNT_SUMMARIES] if counts else []),
        *([_FROM_SOUGHT] if seeks else []),
        *([WITHHELD] if withholds else []),
        NAMED,
    ]
    begins = above_messages("%(sought)s::bigint[]") + ", " if seeks else "WITH "
    made = [*(f"{name} AS MATERIALIZED ({each})" for name, each in tables.items()), f"named AS MATERIALIZED ({named})"]
    return begins + ", ".join(made) + " UNION ALL ".join(kinds)

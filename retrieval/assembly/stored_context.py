"""The context as it is now, from its own table: whatever an answer needs to know of it, in one look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from conversations.models import Conversation
from conversations.reading import array, rows
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS
from conversations.types import Counters
from retrieval.assembly.candidates import Candidate
from retrieval.assembly.context_slots import AROUND, SOUGHT, SPEAKERS, WITHHELD, Look, look_in
from retrieval.lineage_steps import above_messages

# Of the newest items before an ordinal, at most so many: those that the tokens reach, and a margin behind them. What a
# summary reaches to is looked up for each, for in a join the planner may think a scan of all worth its while.
_PAGE = {
    "newest": """
        SELECT ordinal, token_count, message_id, summary_id,
               row_number() OVER newest_first AS place,
               sum(token_count) OVER newest_first - token_count AS newer_tokens
        FROM context_items
        WHERE conversation_id = %(id)s AND ordinal < %(before)s
        WINDOW newest_first AS (ORDER BY ordinal DESC)
        ORDER BY ordinal DESC
        LIMIT %(size)s
    """,
    "page": """
        SELECT ordinal, token_count, message_id, summary_id
        FROM newest
        WHERE place <= %(margin)s + (SELECT count(*) FROM newest WHERE newer_tokens <= %(tokens)s)
    """,
}
_SLOTS = """
    SELECT 'slot', ordinal, token_count, message_id, summary_id,
           coalesce((SELECT s.last_seq FROM summaries s WHERE s.summary_id = page.summary_id), ordinal),
           NULL::text, NULL::text
    FROM page
"""
# A user's message that only carries tool results is nobody's question.
_BEFORE = """
        SELECT c.ordinal, c.token_count, c.message_id
        FROM messages m
        JOIN context_items c ON c.message_id = m.message_id
        WHERE m.conversation_id = %(id)s AND m.seq < (SELECT min(ordinal) FROM page) AND m.role = 'system'
        UNION ALL (
            SELECT c.ordinal, c.token_count, c.message_id
            FROM context_items c,
                 LATERAL (SELECT message_id, role FROM messages m WHERE m.message_id = c.message_id OFFSET 0) AS said
            WHERE c.conversation_id = %(id)s AND said.role = 'user'
              AND coalesce((
                  SELECT bool_or(p.part_type IN ('text', 'file')) OR NOT bool_or(p.part_type = 'tool')
                  FROM message_parts p WHERE p.message_id = said.message_id
              ), true)
            ORDER BY c.ordinal DESC
            LIMIT 1
        )
"""
_FROM_BEFORE = "SELECT 'before', ordinal, token_count, message_id, NULL, ordinal, NULL, NULL FROM before"
_COUNT_SUMMARIES = """
    SELECT 'summaries', count(*), NULL, NULL, NULL, NULL, NULL, NULL
    FROM context_items WHERE conversation_id = %(id)s AND item_type = 'summary'
"""
_FROM_SOUGHT = """
    SELECT CASE WHEN EXISTS (SELECT FROM context_items c WHERE c.message_id = sought.message_id) THEN 'shown'
                ELSE 'recalled' END,
           seq, token_count, message_id, NULL, seq, NULL, NULL
    FROM sought
    UNION ALL
    SELECT 'above', c.ordinal, c.token_count, above.message_id, c.summary_id, s.last_seq, NULL, NULL
    FROM above
    JOIN context_items c ON c.summary_id = above.summary_id
    JOIN summaries s ON s.summary_id = c.summary_id
"""
# What is raw in a context stands at its own seq.
_AROUND = AROUND.format(
    what="""CASE WHEN message_id IN (
        SELECT raw.message_id
        FROM given, LATERAL (
            SELECT c.message_id
            FROM context_items c
            WHERE c.conversation_id = %(id)s AND c.ordinal BETWEEN given.first_seq AND given.last_seq
              AND c.message_id IS NOT NULL
            OFFSET 0
        ) AS raw
    ) THEN 'shown' ELSE 'recalled' END"""
)


@dataclass(frozen=True)
class StoredContext:
    """The context as it is now; with it, `sought` messages are looked up, and what is withheld where something is."""

    conversation_id: int
    counters: Counters
    sought: Sequence[int] = ()
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
            values |= {"sought": array(self.sought), "overhead": MESSAGE_OVERHEAD_TOKENS}
        is_raw = self.counters.active_messages == self.counters.message_count
        statement = _statement(
            looks_before=not is_all,
            counts=not is_all and not is_raw,
            seeks=bool(self.sought),
            withholds=self.is_withholding,
        )
        return look_in(rows(statement, values))

    def around(self, windows: Iterable[tuple[int, int]]) -> list[Candidate]:
        firsts, lasts = zip(*windows, strict=True)
        values: dict[str, Any] = {"id": self.conversation_id, "firsts": array(firsts), "lasts": array(lasts)}
        return look_in(rows(_AROUND, {**values, "overhead": MESSAGE_OVERHEAD_TOKENS})).sought


def stored_context(conversation: Conversation, *, sought: Sequence[int] = ()) -> StoredContext:
    """The context of this conversation, whose row was read in the snapshot in which the context will be."""
    return StoredContext(
        conversation.conversation_id, conversation.counters, sought, is_withholding=bool(conversation.quarantined)
    )


@cache
def _statement(*, looks_before: bool, counts: bool, seeks: bool, withholds: bool) -> str:
    """One question for all that is asked for, and nothing else, so that an answer pays for no more than it has."""
    tables = {
        **({"sought": SOUGHT} if seeks else {}),
        **_PAGE,
        **({"before": _BEFORE} if looks_before else {}),
    }
    named = " UNION ALL ".join(f"SELECT message_id FROM {each}" for each in tables if each != "newest")
    kinds = [
        _SLOTS,
        *([_FROM_BEFORE] if looks_before else []),
        *([_COUNT_SUMMARIES] if counts else []),
        *([_FROM_SOUGHT] if seeks else []),
        *([WITHHELD] if withholds else []),
        SPEAKERS,
    ]
    begins = above_messages("%(sought)s::bigint[]") + ", " if seeks else "WITH "
    made = [*(f"{name} AS MATERIALIZED ({each})" for name, each in tables.items()), f"named AS ({named})"]
    return begins + ", ".join(made) + " UNION ALL ".join(kinds)

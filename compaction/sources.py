"""Reads what a plan needs to know of the active context, and what a summarizer needs to know of a chunk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from compaction.planner import Slot
from compaction.rendering import readable_source
from compaction.summarizers.base import Source, SourceMessage, SourceSummary
from conversations.models import Message, Summary
from conversations.types import Role

_SLOTS = """
    SELECT c.ordinal, c.token_count, c.message_id, c.summary_id, m.role::text, s.depth
    FROM context_items c
    LEFT JOIN messages m ON m.message_id = c.message_id
    LEFT JOIN summaries s ON s.summary_id = c.summary_id
    WHERE c.conversation_id = %s
    ORDER BY c.ordinal
"""

_CALLS = """
    SELECT p.message_id, p.tool_call_id
    FROM context_items c
    JOIN message_parts p ON p.message_id = c.message_id AND p.part_type = 'tool' AND p.tool_call_id IS NOT NULL
    WHERE c.conversation_id = %s
"""

# Messages of role user that carry results and no word of a user's own.
_ANSWERS = """
    SELECT p.message_id
    FROM context_items c
    JOIN messages m ON m.message_id = c.message_id AND m.role = 'user'
    JOIN message_parts p ON p.message_id = c.message_id
    WHERE c.conversation_id = %s
    GROUP BY p.message_id
    HAVING bool_or(p.part_type = 'tool') AND NOT bool_or(p.part_type IN ('text', 'file'))
"""


def read_slots(conversation_id: int) -> list[Slot]:
    """The active context as slots, oldest first; three queries whatever its length."""
    with connection.cursor() as cursor:
        cursor.execute(_CALLS, [conversation_id])
        calls: dict[int, set[str]] = defaultdict(set)
        for message_id, call_id in cursor.fetchall():
            calls[message_id].add(call_id)
        cursor.execute(_ANSWERS, [conversation_id])
        answers = {message_id for (message_id,) in cursor.fetchall()}
        cursor.execute(_SLOTS, [conversation_id])
        return [
            Slot(
                ordinal=ordinal,
                tokens=tokens,
                message_id=message_id,
                summary_id=summary_id,
                role=None if role is None else Role(role),
                depth=depth,
                calls=frozenset(calls.get(message_id, ())),
                is_answer=message_id in answers,
            )
            for ordinal, tokens, message_id, summary_id, role, depth in cursor.fetchall()
        ]


@dataclass(frozen=True)
class ChunkSources:
    """All that a summary of a chunk will be made from, and inherit."""

    sources: tuple[Source, ...]
    message_ids: tuple[int, ...]
    summary_ids: tuple[str, ...]
    hashes: tuple[str, ...]
    first_seq: int
    last_seq: int
    last_message_id: int
    earliest_at: datetime
    latest_at: datetime
    source_tokens: int
    descendant_count: int
    depth: int
    file_ids: tuple[str, ...]


def read_sources(chunk: Sequence[Slot]) -> ChunkSources:
    """The rows behind a chunk's slots, in the order of the context."""
    message_ids = tuple(slot.message_id for slot in chunk if slot.message_id is not None)
    summary_ids = tuple(slot.summary_id for slot in chunk if slot.summary_id is not None)
    messages = {row.message_id: row for row in Message.objects.filter(pk__in=message_ids).readable()}
    summaries = {row.summary_id: row for row in Summary.objects.filter(pk__in=summary_ids).readable()}
    rows: list[Message | Summary] = [
        messages[slot.message_id] if slot.message_id is not None else summaries[slot.summary_id or ""] for slot in chunk
    ]
    last_seq = max(row.seq if isinstance(row, Message) else row.last_seq for row in rows)
    return ChunkSources(
        sources=tuple(_source(row) for row in rows),
        message_ids=message_ids,
        summary_ids=summary_ids,
        hashes=tuple(
            bytes(row.content_hash if isinstance(row, Message) else row.summary_hash).hex() for row in _linked(rows)
        ),
        first_seq=min(row.seq if isinstance(row, Message) else row.first_seq for row in rows),
        last_seq=last_seq,
        last_message_id=_message_at(rows[0].conversation_id, last_seq),
        earliest_at=min(row.created_at if isinstance(row, Message) else row.earliest_at for row in rows),
        latest_at=max(row.created_at if isinstance(row, Message) else row.latest_at for row in rows),
        source_tokens=sum(row.token_count if isinstance(row, Message) else row.source_tokens for row in rows),
        descendant_count=sum(1 if isinstance(row, Message) else row.descendant_count for row in rows),
        depth=1 + max((summary.depth for summary in summaries.values()), default=-1),
        file_ids=tuple(sorted({file_id for summary in summaries.values() for file_id in summary.file_ids})),
    )


def _linked(rows: Sequence[Message | Summary]) -> list[Message | Summary]:
    """In the order of the link tables: messages, then summaries, each from the oldest on."""
    return [row for row in rows if isinstance(row, Message)] + [row for row in rows if isinstance(row, Summary)]


def _message_at(conversation_id: int, seq: int) -> int:
    return Message.objects.values_list("message_id", flat=True).get(conversation_id=conversation_id, seq=seq)


def _source(row: Message | Summary) -> Source:
    if isinstance(row, Message):
        return SourceMessage(
            source_id=f"msg_{row.message_id}",
            seq=row.seq,
            role=row.role,
            text=readable_source(row.content),
            author=row.author or "",
            time=row.created_at,
        )
    return SourceSummary(
        source_id=row.summary_id,
        depth=row.depth,
        first_seq=row.first_seq,
        last_seq=row.last_seq,
        text=row.content,
        earliest_at=row.earliest_at,
        latest_at=row.latest_at,
    )

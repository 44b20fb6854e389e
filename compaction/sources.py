"""Reads what a plan needs to know of the active context, and what a summarizer needs to know of a chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from compaction.planner import Slot
from compaction.rendering import readable_source
from compaction.summarizers.base import Source, SourceMessage, SourceSummary
from conversations.models import Summary
from conversations.reading import array, rows
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
    SELECT p.message_id, array_agg(p.tool_call_id)
    FROM context_items c
    JOIN message_parts p ON p.message_id = c.message_id AND p.part_type = 'tool' AND p.tool_call_id IS NOT NULL
    WHERE c.conversation_id = %s
    GROUP BY p.message_id
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

_MESSAGES = """
    SELECT message_id, seq, role::text, author, content, created_at, token_count, content_hash
    FROM messages WHERE message_id = ANY(%s)
"""
_MESSAGE_AT = """
    SELECT m.message_id FROM summaries s JOIN messages m ON m.conversation_id = s.conversation_id
    WHERE s.summary_id = %s AND m.seq = %s
"""


def read_slots(conversation_id: int) -> list[Slot]:
    """The active context as slots, oldest first; three queries whatever its length."""
    with connection.cursor() as cursor:
        cursor.execute(_CALLS, [conversation_id])
        calls = {message_id: frozenset(call_ids) for message_id, call_ids in cursor}
        cursor.execute(_ANSWERS, [conversation_id])
        answers = {message_id for (message_id,) in cursor}
        cursor.execute(_SLOTS, [conversation_id])
        return [
            Slot(
                ordinal=ordinal,
                tokens=tokens,
                message_id=message_id,
                summary_id=summary_id,
                role=None if role is None else Role(role),
                depth=depth,
                calls=calls.get(message_id, frozenset()),
                is_answer=message_id in answers,
            )
            for ordinal, tokens, message_id, summary_id, role, depth in cursor
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
    read: dict[Any, _Read] = {**_read_messages(message_ids), **_read_summaries(summary_ids)}
    in_order = [read[slot.summary_id or slot.message_id] for slot in chunk]
    last_seq = max(each.last_seq for each in in_order)
    return ChunkSources(
        sources=tuple(each.source for each in in_order),
        message_ids=message_ids,
        summary_ids=summary_ids,
        # In the order of the link tables: messages, then summaries, each from the oldest on.
        hashes=tuple(read[each].hash for each in (*message_ids, *summary_ids)),
        first_seq=min(each.first_seq for each in in_order),
        last_seq=last_seq,
        last_message_id=_message_at(last_seq, chunk),
        earliest_at=min(each.earliest_at for each in in_order),
        latest_at=max(each.latest_at for each in in_order),
        source_tokens=sum(each.tokens for each in in_order),
        descendant_count=sum(each.messages for each in in_order),
        depth=1 + max(each.depth for each in in_order),
        file_ids=tuple(sorted({file_id for each in in_order for file_id in each.file_ids})),
    )


def _message_at(seq: int, chunk: Sequence[Slot]) -> int:
    """The message of this seq, which is in the chunk or below one of its summaries."""
    for slot in chunk:
        if slot.ordinal == seq and slot.message_id is not None:
            return slot.message_id
    summary_id = next(slot.summary_id for slot in chunk if slot.summary_id is not None)
    return rows(_MESSAGE_AT, [summary_id, seq])[0][0]


@dataclass(frozen=True)
class _Read:
    """One source, a message or a summary, and what a summary of it takes over."""

    source: Source
    hash: str
    first_seq: int
    last_seq: int
    earliest_at: datetime
    latest_at: datetime
    tokens: int
    messages: int = 1
    depth: int = -1
    file_ids: tuple[str, ...] = ()


def _read_messages(message_ids: Sequence[int]) -> dict[int, _Read]:
    if not message_ids:
        return {}
    return {
        message_id: _Read(
            source=SourceMessage(
                source_id=f"msg_{message_id}",
                seq=seq,
                role=role,
                text=readable_source(content),
                author=author or "",
                time=created_at,
            ),
            hash=content_hash.hex(),
            first_seq=seq,
            last_seq=seq,
            earliest_at=created_at,
            latest_at=created_at,
            tokens=tokens,
        )
        for message_id, seq, role, author, content, created_at, tokens, content_hash in rows(
            _MESSAGES, [array(message_ids)]
        )
    }


def _read_summaries(summary_ids: Sequence[str]) -> dict[str, _Read]:
    if not summary_ids:
        return {}
    return {
        summary.summary_id: _Read(
            source=SourceSummary(
                source_id=summary.summary_id,
                depth=summary.depth,
                first_seq=summary.first_seq,
                last_seq=summary.last_seq,
                text=summary.content,
                earliest_at=summary.earliest_at,
                latest_at=summary.latest_at,
            ),
            hash=bytes(summary.summary_hash).hex(),
            first_seq=summary.first_seq,
            last_seq=summary.last_seq,
            earliest_at=summary.earliest_at,
            latest_at=summary.latest_at,
            tokens=summary.source_tokens,
            messages=summary.descendant_count,
            depth=summary.depth,
            file_ids=tuple(summary.file_ids),
        )
        for summary in Summary.objects.filter(pk__in=summary_ids).readable()
    }

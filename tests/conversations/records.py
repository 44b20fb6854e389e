"""What a message is once it is stored, without storing it: for tests of pure functions."""

from __future__ import annotations

from datetime import UTC, datetime

from conversations.content.flattening import flattened
from conversations.types import PART_COLUMNS, MessageRecord, NewMessage, PartRecord


def as_stored(message: NewMessage, *, seq: int = 1) -> MessageRecord:
    """The record of this message, with everything that the store fills in."""
    return MessageRecord(
        message_id=seq,
        conversation_id=1,
        seq=seq,
        role=message.role,
        content=flattened(message.parts) if message.content is None else message.content,
        token_count=0,
        token_counter="estimate",
        created_at=message.created_at or datetime(2026, 1, 31, 12, tzinfo=UTC),
        content_hash="",
        chain_hash="",
        author=message.author,
        metadata=dict(message.metadata),
        parts=tuple(
            PartRecord(**{name: getattr(part, name) for name in PART_COLUMNS}, ordinal=ordinal, message_id=seq)
            for ordinal, part in enumerate(message.parts)
        ),
    )

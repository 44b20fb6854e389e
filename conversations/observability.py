"""Counters of the store: messages as they come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from prometheus_client import Counter

from conversations.types import AppendedMessage, Role

MESSAGES = Counter("lcm_ingest_messages_total", "Messages stored, by role.", ["role"])
TOKENS = Counter("lcm_ingest_tokens_total", "Tokens of the messages stored.")
BYTES = Counter("lcm_ingest_bytes_total", "Bytes of the messages' contents, as UTF-8.")
REPEATS = Counter("lcm_ingest_repeats_total", "Messages sent again under an idempotency key that was stored already.")
CONFLICTS = Counter("lcm_ingest_conflicts_total", "Appends refused: their idempotency key belongs to another message.")

# Shown from the start, as no rate can be computed for a series that begins with its first event.
for _role in Role:
    MESSAGES.labels(_role.value)


def appended(message_rows: Sequence[Mapping[str, Any]], messages: Sequence[AppendedMessage]) -> None:
    """Count an append when it is committed."""
    transaction.on_commit(partial(_count, message_rows, messages))


def _count(message_rows: Sequence[Mapping[str, Any]], messages: Sequence[AppendedMessage]) -> None:
    stored = [row for row, message in zip(message_rows, messages, strict=True) if message.created]
    for role in {row["role"] for row in stored}:
        MESSAGES.labels(role).inc(sum(row["role"] == role for row in stored))
    TOKENS.inc(sum(row["token_count"] for row in stored))
    BYTES.inc(sum(len(row["content"].encode()) for row in stored))
    REPEATS.inc(len(messages) - len(stored))

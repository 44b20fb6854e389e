"""What the store counts: messages as they come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction

from conversations.metering import Meter
from conversations.types import AppendedMessage, Role

_ROLES = tuple((role.value,) for role in Role)

MESSAGES = Meter("lcm_ingest_messages_total", "Messages stored, by role.", labels=("role",), known=_ROLES)
TOKENS = Meter("lcm_ingest_tokens_total", "Tokens of the messages stored.")
BYTES = Meter("lcm_ingest_bytes_total", "Bytes of the messages' contents, as UTF-8.")
REPEATS = Meter("lcm_ingest_repeats_total", "Messages sent again under a key that was stored already.")
CONFLICTS = Meter("lcm_ingest_conflicts_total", "Appends refused, as a key was used before for another message.")


def appended(message_rows: Sequence[Mapping[str, Any]], messages: Sequence[AppendedMessage]) -> None:
    """Count an append, once it is certain."""
    if MESSAGES.target is not None:
        transaction.on_commit(partial(_count, message_rows, messages))


def _count(message_rows: Sequence[Mapping[str, Any]], messages: Sequence[AppendedMessage]) -> None:
    stored = [row for row, message in zip(message_rows, messages, strict=True) if message.created]
    for role in {row["role"] for row in stored}:
        MESSAGES.add(sum(row["role"] == role for row in stored), role)
    if stored:
        TOKENS.add(sum(row["token_count"] for row in stored))
        BYTES.add(sum(len(row["content"].encode()) for row in stored))
    if len(stored) < len(messages):
        REPEATS.add(len(messages) - len(stored))

"""The floor of ingest: the same rows in plain SQL, in as few statements as can be, prepared, on our own tables.

It counts no tokens, makes no hashes and checks nothing: what is beyond it is what LCM does for the caller.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from conversations.content.flattening import flattened
from conversations.types import NewMessage
from lcmsite.connections import connect


class Row(NamedTuple):
    """One message with its part, as the statements below take them."""

    role: str
    content: str
    token_count: int
    created_at: datetime
    digest: bytes
    part_type: str
    text_content: str | None
    tool_call_id: str | None
    tool_name: str | None
    tool_status: str | None
    tool_input: str | None
    tool_output: str | None


APPEND_ONE = """
    WITH c AS (
        UPDATE conversations SET next_seq = next_seq + 1, total_tokens = total_tokens + %(token_count)s,
            active_messages = active_messages + 1, active_tokens = active_tokens + %(token_count)s + 4,
            updated_at = now()
        WHERE conversation_id = %(conversation_id)s
        RETURNING conversation_id, next_seq - 1 AS seq, session_id
    ), m AS (
        INSERT INTO messages (conversation_id, seq, role, content, token_count, created_at, token_counter,
                              chained_parts, content_hash, entry_hash, chain_hash)
        SELECT conversation_id, seq, %(role)s::message_role, %(content)s, %(token_count)s, %(created_at)s, 'estimate',
               1, %(digest)s, %(digest)s, %(digest)s
        FROM c
        RETURNING message_id
    ), p AS (
        INSERT INTO message_parts (part_id, message_id, session_id, part_type, ordinal, text_content, tool_call_id,
                                   tool_name, tool_status, tool_input, tool_output, part_hash)
        SELECT 'part_' || message_id || '_0', message_id, session_id, %(part_type)s::message_part_type, 0,
               %(text_content)s, %(tool_call_id)s, %(tool_name)s, %(tool_status)s, %(tool_input)s::jsonb,
               %(tool_output)s, %(digest)s
        FROM m, c
    )
    INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count)
    SELECT conversation_id, seq, 'message', message_id, %(token_count)s + 4 FROM m, c
    RETURNING message_id, ordinal
"""

# Lists go as psycopg sends them unless told otherwise, as texts, which the goals were measured beside. In binary, this
# floor would take about a seventh less.
APPEND_MANY = """
    WITH given AS MATERIALIZED (
        SELECT * FROM unnest(
            %(role)s::message_role[], %(content)s::text[], %(token_count)s::int[], %(created_at)s::timestamptz[],
            %(digest)s::bytea[], %(part_type)s::message_part_type[], %(text_content)s::text[], %(tool_call_id)s::text[],
            %(tool_name)s::text[], %(tool_status)s::text[], %(tool_input)s::text[], %(tool_output)s::text[]
        ) WITH ORDINALITY AS each(
            role, content, token_count, created_at, digest, part_type, text_content, tool_call_id, tool_name,
            tool_status, tool_input, tool_output, place
        )
    ), c AS (
        UPDATE conversations SET next_seq = next_seq + more.messages, total_tokens = total_tokens + more.tokens,
            active_messages = active_messages + more.messages,
            active_tokens = active_tokens + more.tokens + 4 * more.messages, updated_at = now()
        FROM (SELECT count(*) AS messages, sum(token_count) AS tokens FROM given) more
        WHERE conversation_id = %(conversation_id)s
        RETURNING conversation_id, next_seq - more.messages AS first_seq, session_id
    ), m AS (
        INSERT INTO messages (conversation_id, seq, role, content, token_count, created_at, token_counter,
                              chained_parts, content_hash, entry_hash, chain_hash)
        SELECT conversation_id, first_seq + place - 1, role, content, token_count, created_at, 'estimate', 1,
               digest, digest, digest
        FROM given, c ORDER BY place
        RETURNING message_id, seq, token_count
    ), p AS (
        INSERT INTO message_parts (part_id, message_id, session_id, part_type, ordinal, text_content, tool_call_id,
                                   tool_name, tool_status, tool_input, tool_output, part_hash)
        SELECT 'part_' || message_id || '_0', message_id, session_id, part_type, 0, text_content, tool_call_id,
               tool_name, tool_status, tool_input::jsonb, tool_output, digest
        FROM m, c, given WHERE seq = first_seq + place - 1
    )
    INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count)
    SELECT conversation_id, seq, 'message', message_id, token_count + 4 FROM m, c
    RETURNING message_id, ordinal
"""


class Floor:
    """A connection that appends with nothing in between."""

    def __init__(self, connection: psycopg.Connection[Any] | None = None) -> None:
        self.connection = connection or connect(autocommit=True)

    def append_one(self, conversation_id: int, row: Row) -> list[tuple[Any, ...]]:
        """The id and seq of the message."""
        return self._append(APPEND_ONE, {"conversation_id": conversation_id, **row._asdict()})

    def append_many(self, conversation_id: int, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
        """The ids and seqs of the messages."""
        columns = zip(Row._fields, map(list, zip(*rows, strict=True)), strict=True)
        return self._append(APPEND_MANY, {"conversation_id": conversation_id, **dict(columns)})

    def _append(self, statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        with psycopg.Cursor(self.connection) as cursor:
            return cursor.execute(statement, values, prepare=True).fetchall()


def four_characters(text: str) -> int:
    """A token for each four characters: what costs nothing to say."""
    return len(text) // 4


def rows_of(messages: Iterable[NewMessage], *, count: Callable[[str], int] = four_characters) -> list[Row]:
    """The messages as rows, their tokens as they are counted by whoever makes them."""
    return [_row_of(message, count) for message in messages]


def _row_of(message: NewMessage, count: Callable[[str], int]) -> Row:
    [part] = message.parts
    content = flattened(message.parts)
    assert message.created_at is not None
    return Row(
        role=message.role,
        content=content,
        token_count=count(content),
        created_at=message.created_at,
        digest=hashlib.sha256(content.encode()).digest(),
        part_type=part.part_type,
        text_content=part.text_content,
        tool_call_id=part.tool_call_id,
        tool_name=part.tool_name,
        tool_status=part.tool_status,
        tool_input=None if part.tool_input is None else json.dumps(part.tool_input),
        tool_output=part.tool_output,
    )

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
from conversations.sql import load
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


SQL = load("tests/floors.sql")


class Floor:
    """A connection with nothing in between."""

    def __init__(self, connection: psycopg.Connection[Any] | None = None) -> None:
        self.connection = connection or connect(autocommit=True)

    def rows(self, name: str, values: Any) -> list[tuple[Any, ...]]:
        """What the statement of this name gives."""
        with psycopg.Cursor(self.connection) as cursor:
            return cursor.execute(SQL[name], values, prepare=True).fetchall()

    def append_one(self, conversation_id: int, row: Row) -> list[tuple[Any, ...]]:
        """The id and seq of the message."""
        return self.rows("append_one", {"conversation_id": conversation_id, **row._asdict()})

    def append_many(self, conversation_id: int, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
        """The ids and seqs of the messages."""
        columns = zip(Row._fields, map(list, zip(*rows, strict=True)), strict=True)
        return self.rows("append_many", {"conversation_id": conversation_id, **dict(columns)})


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

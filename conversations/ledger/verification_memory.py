"""Values that later lines of a ledger are compared with, kept on disk."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

_TABLES = """
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY, content_hash, event_id, created_at, token_count, chained_parts, is_erased, is_covered
);
CREATE TABLE keys (key BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE file_references (seq, place, sha256);
BEGIN;
"""
# A file reference of a message: the seq, the file's id and position in the message as JSON, and the file's SHA-256.
SealedReference = tuple[int, str, str | None]


class Remembered(NamedTuple):
    """The values of one message that later lines are compared with."""

    seq: int
    content_hash: str
    event_id: str
    created_at: int
    token_count: int
    chained_parts: int
    is_erased: bool


class VerificationMemory:
    """The messages of one conversation, and the file references in their `files`."""

    def __init__(self) -> None:
        # A database without a name is a temporary file, deleted when closed.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(_TABLES)

    def close(self) -> None:
        self._database.close()

    def forget(self) -> None:
        """Clear the memory for another conversation."""
        for table in ("messages", "keys", "file_references"):
            self._database.execute(f"DELETE FROM {table}")

    def take_key(self, key: str) -> bool:
        """Remember an idempotency key; return whether it is new."""
        return self._database.execute("INSERT OR IGNORE INTO keys VALUES (?)", [key.encode()]).rowcount == 1

    def put(self, message: Remembered) -> None:
        self._database.execute("INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, false)", message)

    def get(self, seq: int) -> Remembered | None:
        row = self._database.execute("SELECT * FROM messages WHERE seq = ?", [seq]).fetchone()
        return None if row is None else Remembered(*row[:-1])

    def mark_covered(self, seq: int) -> bool:
        """Mark a message as the source of a summary; return whether it was already."""
        marked = self._database.execute("UPDATE messages SET is_covered = 1 WHERE seq = ? AND NOT is_covered", [seq])
        return marked.rowcount == 0

    def put_reference(self, seq: int, entry: Sequence[Any]) -> None:
        self._database.execute("INSERT INTO file_references VALUES (?, ?, ?)", sealed_reference(seq, entry))

    def reference(self, number: int) -> SealedReference | None:
        """Return the file reference with this number; the first has the number 1."""
        row: SealedReference | None
        row = self._database.execute("SELECT * FROM file_references WHERE rowid = ?", [number]).fetchone()
        return row


def sealed_reference(seq: int, entry: Sequence[Any]) -> SealedReference:
    file_id, sha256, *place = entry
    return seq, json.dumps([file_id, *place]), sha256

"""Read sessions from OpenCode's SQLite database, opened read-only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from conversations.content.json_values import noun_of
from conversations.errors import Invalid
from lcmsite.catalogue import json_text

MAGIC = b"SQLite format 3\0"
_TABLES = {"session", "message", "part"}
_KEYS = {"id": "id", "parent_id": "parentID", "directory": "directory", "title": "title", "version": "version"}


def sessions_in(path: Path, refused: list[str]) -> Iterator[dict[str, Any]]:
    """Yield each session in the form of `opencode export`, parents first.

    The write-ahead log is read, too. A session with a malformed row is left out, and `refused` gets the reason. Raises
    Invalid if the file is another program's database or cannot be read.
    """
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            database.text_factory = _text_or_bytes
            found = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not found >= _TABLES:
                raise Invalid(f"{path.name} is a database, but not OpenCode's.", code="malformed_history")
            # One snapshot for all sessions: OpenCode may write meanwhile.
            database.execute("BEGIN")
            for session in database.execute("SELECT * FROM session ORDER BY time_created, id"):
                try:
                    value = _session(database, session)
                except Invalid as wrong:
                    refused.append(f"{path.name}, session {session['id']}, {wrong.detail}")
                else:
                    yield value
    except sqlite3.Error as refusal:
        raise Invalid(f"{path.name} cannot be read: {refusal}.", code="unreadable_file") from refusal


def _session(database: sqlite3.Connection, row: sqlite3.Row) -> dict[str, Any]:
    columns = row.keys()
    info = {key: row[name] for name, key in _KEYS.items() if name in columns and row[name] is not None}
    parts: dict[str, list[dict[str, Any]]] = {}
    for part in database.execute("SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id", [row["id"]]):
        parts.setdefault(part["message_id"], []).append({"id": part["id"], **_data_of(part, "part")})
    select = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
    messages: list[dict[str, Any]] = [
        {"info": {"id": message["id"], **_data_of(message, "message")}, "parts": parts.get(message["id"], [])}
        for message in database.execute(select, [row["id"]])
    ]
    return {"info": info | {"time": {"created": row["time_created"]}}, "messages": messages}


def _data_of(row: sqlite3.Row, table: str) -> dict[str, Any]:
    """Return the object in the column `data`; Invalid if it holds anything else."""
    data = row["data"]
    try:
        found = json_text.parse(data) if isinstance(data, str | bytes) else data
    except Invalid as wrong:
        raise Invalid(f"{table} {row['id']}: {wrong.detail}") from wrong
    if not isinstance(found, dict):
        raise Invalid(f"{table} {row['id']}: data must be an object, not {noun_of(found)}.")
    return found


def _text_or_bytes(value: bytes) -> str | bytes:
    """Decode a text; one that is not UTF-8 stays bytes, which refuses only its row."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value

"""What verifying must remember of each message, on disk: memory stays flat however long the conversation."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# content_hash, event_id, created_at, token_count, chained_parts, and whether it is erased or the source of a summary.
_RECORD = struct.Struct(">32s26sqiiBB")
_COVERED = _RECORD.size - 1
# The seq of a message, the hash of what it needs and where, and that of the file.
_REFERENCE = struct.Struct(">q32s32s")
# A place in the file for each message: one that says it is further off than this is not worth a place.
_FURTHEST = 2**32


@dataclass(frozen=True)
class Remembered:
    """What later lines are compared with."""

    content_hash: bytes
    event_id: bytes
    created_at: int
    token_count: int
    chained_parts: int
    # As numbers go into a record, 0 or 1.
    is_erased: int


class ReferenceMemory:
    """The files that the messages of one conversation need, in order, to be compared with the reference lines."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (as that of MessageMemory)

    def close(self) -> None:
        self._file.close()

    def forget(self) -> None:
        """Another conversation begins."""
        self._file.seek(0)
        self._file.truncate()

    def put(self, seq: int, entry: Sequence[Any]) -> None:
        self._file.write(_REFERENCE.pack(seq, *_digests(entry)))

    def start(self) -> None:
        """Go back to the first; from here on they are only read."""
        self._file.seek(0)

    def next(self) -> tuple[int, bytes, bytes] | None:
        """The next one as `sealed_reference` gives it; None behind the last."""
        record = self._file.read(_REFERENCE.size)
        return _REFERENCE.unpack(record) if len(record) == _REFERENCE.size else None


def sealed_reference(seq: int, entry: Sequence[Any]) -> tuple[int, bytes, bytes]:
    """The message, what it needs and where, and the hash of the file."""
    return seq, *_digests(entry)


def _digests(entry: Sequence[Any]) -> tuple[bytes, bytes]:
    file_id, sha256, *place = entry
    return hashlib.sha256(json.dumps([file_id, *place]).encode("ascii")).digest(), bytes.fromhex(sha256 or "00" * 32)


class MessageMemory:
    """The messages of one conversation by seq."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`; gone with the process at the latest)
        # Opened for the first key: most ledgers have none.
        self._keys: sqlite3.Connection | None = None

    def close(self) -> None:
        self._file.close()
        self._close_keys()

    def forget(self) -> None:
        """Another conversation begins."""
        self._file.seek(0)
        self._file.truncate()
        self._close_keys()

    def take_key(self, key: str) -> bool:
        """Note an idempotency key; whether it is the first of its name."""
        if self._keys is None:
            # A file of its own, gone when it is closed.
            self._keys = sqlite3.connect("", isolation_level=None)
            self._keys.execute("CREATE TABLE keys (key BLOB PRIMARY KEY) WITHOUT ROWID")
            self._keys.execute("BEGIN")
        taken = self._keys.execute("INSERT OR IGNORE INTO keys VALUES (?)", [key.encode()])
        return taken.rowcount == 1

    def _close_keys(self) -> None:
        if self._keys is not None:
            self._keys.close()
            self._keys = None

    def put(self, seq: int, message: Remembered) -> None:
        if seq < _FURTHEST:
            self._file.seek(seq * _RECORD.size)
            self._file.write(_RECORD.pack(*vars(message).values(), 0))

    def get(self, seq: int) -> Remembered | None:
        record = self._read(seq)
        return None if record is None else Remembered(*_RECORD.unpack(record)[:-1])

    def cover(self, seq: int) -> bool:
        """Note that a summary was made from this message; whether one was already."""
        record = self._read(seq)
        if record is None:
            return False
        self._file.seek(seq * _RECORD.size + _COVERED)
        self._file.write(b"\x01")
        return record[_COVERED] == 1

    def _read(self, seq: int) -> bytes | None:
        if not 1 <= seq < _FURTHEST:
            return None
        self._file.seek(seq * _RECORD.size)
        record = self._file.read(_RECORD.size)
        # Between the ends of a gap there are zeros; every event id has letters.
        return record if len(record) == _RECORD.size and record[32:58].strip(b"\x00") else None

"""Values of messages that later lines are compared with, kept on disk."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# content_hash, event_id, created_at, token_count, chained_parts, and whether it is erased, and source of a summary.
_RECORD = struct.Struct(">32s26sqiiBB")
_COVERED = _RECORD.size - 1
# The seq of a message, the hash of its reference, and the hash of the file.
_REFERENCE = struct.Struct(">q32s32s")
# Each message has a place in the file; a forged seq beyond this gets none.
_MOST_SEQ = 2**32


@dataclass(frozen=True)
class Remembered:
    """The values of one message that later lines are compared with."""

    content_hash: bytes
    event_id: bytes
    created_at: int
    token_count: int
    chained_parts: int
    # 0 or 1.
    is_erased: int


class ReferenceMemory:
    """The references that the messages of one conversation seal, in order."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (as that of MessageMemory)

    def close(self) -> None:
        self._file.close()

    def forget(self) -> None:
        """Clear the memory for another conversation."""
        self._file.seek(0)
        self._file.truncate()

    def put(self, seq: int, entry: Sequence[Any]) -> None:
        self._file.write(_REFERENCE.pack(seq, *_digests(entry)))

    def start(self) -> None:
        """Rewind, to read the references."""
        self._file.seek(0)

    def next(self) -> tuple[int, bytes, bytes] | None:
        """Return the next reference in the form of `sealed_reference`.

        Returns None after the last.
        """
        record = self._file.read(_REFERENCE.size)
        return _REFERENCE.unpack(record) if len(record) == _REFERENCE.size else None


def sealed_reference(seq: int, entry: Sequence[Any]) -> tuple[int, bytes, bytes]:
    """Return the seq of a message, and the hashes of its reference and the file."""
    return seq, *_digests(entry)


def _digests(entry: Sequence[Any]) -> tuple[bytes, bytes]:
    file_id, sha256, *place = entry
    return hashlib.sha256(json.dumps([file_id, *place]).encode("ascii")).digest(), bytes.fromhex(sha256 or "00" * 32)


class MessageMemory:
    """The messages of one conversation, by seq."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`, or with the process)
        # Opened for the first key, as most ledgers have none.
        self._keys: sqlite3.Connection | None = None

    def close(self) -> None:
        self._file.close()
        self._close_keys()

    def forget(self) -> None:
        """Clear the memory for another conversation."""
        self._file.seek(0)
        self._file.truncate()
        self._close_keys()

    def take_key(self, key: str) -> bool:
        """Remember an idempotency key; return whether it is new."""
        if self._keys is None:
            # A temporary file, deleted when closed.
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
        if seq < _MOST_SEQ:
            self._file.seek(seq * _RECORD.size)
            self._file.write(_RECORD.pack(*vars(message).values(), 0))

    def get(self, seq: int) -> Remembered | None:
        record = self._read(seq)
        return None if record is None else Remembered(*_RECORD.unpack(record)[:-1])

    def cover(self, seq: int) -> bool:
        """Mark this message as the source of a summary.

        Return whether it was one already.
        """
        record = self._read(seq)
        if record is None:
            return False
        self._file.seek(seq * _RECORD.size + _COVERED)
        self._file.write(b"\x01")
        return record[_COVERED] == 1

    def _read(self, seq: int) -> bytes | None:
        if not 1 <= seq < _MOST_SEQ:
            return None
        self._file.seek(seq * _RECORD.size)
        record = self._file.read(_RECORD.size)
        # Gaps read as zeros; every event id has letters.
        return record if len(record) == _RECORD.size and record[32:58].strip(b"\x00") else None

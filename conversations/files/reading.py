"""Read stored files as bytes or lines, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from django.core.files.base import File
from django.core.files.storage import Storage

from conversations.errors import NotFound
from conversations.files.storage import storing
from conversations.models import LargeFile
from conversations.types import LargeFileRecord

PIECE_BYTES = 256 * 1024
# Maximum number of bytes of lines in one response.
MOST_TEXT_BYTES = 256 * 1024


@dataclass(frozen=True)
class FileText:
    """Lines of a file; with `is_cut`, the last line was cut at the size limit."""

    file_id: str
    first_line: int
    last_line: int
    text: str
    next_line: int | None
    is_cut: bool = False
    note: str | None = None


@dataclass(frozen=True)
class FileBytes:
    """A range of a file's bytes, to be read once, in pieces."""

    record: LargeFileRecord
    offset: int
    length: int
    file_size: int
    file: File[Any]

    def reader(self) -> FileRange:
        """Return the range as a file object."""
        self.file.seek(self.offset)
        return FileRange(self.file, self.length)

    def pieces(self) -> Iterator[bytes]:
        with closing(self.reader()) as reader:
            while piece := reader.read(PIECE_BYTES):
                yield piece


@dataclass
class FileRange:
    """A file object that ends after a number of bytes."""

    file: File[Any]
    left: int

    def read(self, size: int = -1) -> bytes:
        piece: bytes = self.file.read(self.left if size < 0 else min(size, self.left))
        self.left -= len(piece)
        return piece

    def close(self) -> None:
        self.file.close()


def open_stored(storage: Storage, row: LargeFile) -> File[Any]:
    """Open a stored file; NotFound if it was erased, or Unavailable."""
    if row.erased_by_id is not None:
        raise NotFound(f"The bytes of {row.file_id} were erased permanently.", code="erased")
    with storing(f"The bytes of {row.file_id} cannot be read"):
        return storage.open(row.storage_uri)


def file_text(file_id: str, file: File[Any], *, first_line: int, line_count: int) -> FileText:
    """Return lines from `first_line` on; earlier lines are skipped in pieces."""
    _skip_lines(file, first_line - 1)
    lines: list[bytes] = []
    room = MOST_TEXT_BYTES
    is_cut = False
    while True:
        if len(lines) == line_count or is_cut:
            goes_on = bool(file.read(1))
            break
        line = file.readline(room + 1)
        goes_on = len(line) > room and bool(lines)
        if not line or goes_on:
            # The end of the file, or a line for the next response.
            break
        is_cut = len(line) > room
        lines.append(line[:room])
        if is_cut and not line.endswith(b"\n"):
            _skip_lines(file, 1)
        room -= len(line)
    last_line = first_line + len(lines) - 1
    return FileText(
        file_id=file_id,
        first_line=first_line,
        last_line=last_line,
        text=b"".join(lines).decode("utf-8", "replace"),
        next_line=last_line + 1 if goes_on else None,
        is_cut=is_cut,
        note=None if lines else f"The file has no line {first_line}.",
    )


def _skip_lines(file: File[Any], count: int) -> None:
    """Read past this many line ends, a piece of a long line at a time."""
    while count > 0 and (piece := file.readline(PIECE_BYTES)):
        count -= piece.endswith(b"\n")

"""What is kept of a file's bytes as they pass by: the beginning, the end, and how many lines there are. Pure."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

HEAD_BYTES = 1024 * 1024
TAIL_BYTES = 64 * 1024


@dataclass
class Glance:
    """Looks at a file's bytes, however they arrive."""

    byte_size: int = 0
    newlines: int = 0
    _head: bytearray | None = None
    _tail: bytes = b""

    def add(self, chunk: bytes) -> None:
        self.byte_size += len(chunk)
        self.newlines += chunk.count(b"\n")
        if self._head is None:
            self._head = bytearray()
        if len(self._head) < HEAD_BYTES:
            self._head += chunk[: HEAD_BYTES - len(self._head)]
        self._tail = (self._tail + chunk[-TAIL_BYTES:])[-TAIL_BYTES:]

    def of(self, file: BinaryIO, *, file_name: str | None, mime_type: str | None) -> Seen:
        """What was seen, with the file itself for those that have to look further."""
        return Seen(
            file=file,
            file_name=file_name or "",
            mime_type=mime_type or "",
            byte_size=self.byte_size,
            lines=self.newlines + (self._tail[-1:] not in (b"", b"\n")),
            head=bytes(self._head or b""),
            tail=self._tail,
        )


@dataclass(frozen=True)
class Seen:
    """A file as an explorer gets it."""

    file: BinaryIO
    file_name: str
    mime_type: str
    byte_size: int
    lines: int
    head: bytes
    tail: bytes

    @property
    def is_whole(self) -> bool:
        """Whether the head is all there is."""
        return len(self.head) == self.byte_size

    @cached_property
    def text(self) -> str | None:
        """The beginning as text; None for bytes that are none. The last character may have been cut in two."""
        encoding = "utf-8"
        if self.head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = "utf-16"
        elif b"\x00" in self.head:
            return None
        try:
            return codecs.getincrementaldecoder(encoding)().decode(self.head).removeprefix("\ufeff")
        except UnicodeDecodeError:
            return None

    @cached_property
    def ending(self) -> str:
        """The end as text; what is not text there is left out."""
        return self.tail.decode("utf-8", "ignore")

"""Collect the beginning and the end of a file while it is stored. Pure."""

from __future__ import annotations

import codecs
import time
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from conversations.humanize import counted

# The limits of an exploration.
SECONDS = 5.0
MOST_LINES = 60
MOST_LINE_CHARACTERS = 200
MOST_CHARACTERS = 4000

HEAD_BYTES = 1024 * 1024
TAIL_BYTES = 64 * 1024


@dataclass
class Seen:
    """A file for explorers: its beginning and its end, collected chunk by chunk."""

    file: BinaryIO
    file_name: str = ""
    mime_type: str = ""
    byte_size: int = 0
    newlines: int = 0
    head: bytes = b""
    tail: bytes = b""

    def add(self, chunk: bytes) -> None:
        self.byte_size += len(chunk)
        self.newlines += chunk.count(b"\n")
        self.head += chunk[: HEAD_BYTES - len(self.head)]
        self.tail = (self.tail + chunk[-TAIL_BYTES:])[-TAIL_BYTES:]

    @property
    def lines(self) -> int:
        return self.newlines + (self.tail[-1:] not in (b"", b"\n"))

    @cached_property
    def deadline(self) -> float:
        """The time at which the exploration must end, set when it is first read."""
        return time.monotonic() + SECONDS

    @property
    def is_late(self) -> bool:
        """Whether an exploration has to end with the result so far."""
        return time.monotonic() > self.deadline

    @property
    def is_whole(self) -> bool:
        """Whether the head is the whole file."""
        return len(self.head) == self.byte_size

    @cached_property
    def text(self) -> str | None:
        """The beginning as text, without a character cut in two; None for binary data."""
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
        """The end as text, without bytes that are not UTF-8."""
        return self.tail.decode("utf-8", "ignore")


def cut(text: str, most: int = MOST_LINE_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[:most]} …"


def shortened(lines: list[str], noun: str, *, most: int = MOST_LINES, indent: str = "") -> list[str]:
    """Return the first lines, and a line that counts the others."""
    more = len(lines) - most
    return [*lines[:most], *([f"{indent}… {counted(more, noun)} more"] if more > 0 else [])]

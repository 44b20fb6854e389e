"""How long and how much an exploration may look. Pure."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

SECONDS = 5.0
MOST_LINES = 60
MOST_LINE_CHARACTERS = 200
MOST_CHARACTERS = 4000


@dataclass(frozen=True)
class Deadline:
    """A moment after which an exploration ends with what it has."""

    at: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.at


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class TooMuch(Exception):
    """More would have to be looked at than an exploration may."""


@dataclass
class Limited:
    """A stream that ends with TooMuch: whatever unpacks into it, no more than so many bytes come out."""

    file: Readable
    left: int

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > self.left:
            size = self.left + 1
        data = self.file.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise TooMuch
        return data


def cut(text: str, most: int = MOST_LINE_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[:most]} …"


def number(count: int, noun: str) -> str:
    """`1 line`, `1,204 lines`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("ry") else f"{count:,} {noun}s"

"""Cut streams of server-sent events where they end, and write events. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# What ends a stream of chat completions.
END_OF_CHAT = b"data: [DONE]\n\n"
_BLANK_LINE = re.compile(rb"\n\r?\n")
# A blank line may begin so many bytes before a piece.
_LONGEST_BEGINNING = 2


@dataclass
class EventStream:
    """Takes a stream piece by piece; `rest` is the event that is not ended yet."""

    rest: bytearray = field(default_factory=bytearray)

    def ended(self, piece: bytes) -> list[bytes]:
        """The events that end in this piece, each with its blank line."""
        # What came before the piece is not searched again: an event may come in thousands of pieces.
        searched = max(0, len(self.rest) - _LONGEST_BEGINNING)
        self.rest += piece
        found, start = [], 0
        for end in [blank.end() for blank in _BLANK_LINE.finditer(self.rest, searched)]:
            found.append(bytes(self.rest[start:end]))
            start = end
        del self.rest[:start]
        return found

    def take_rest(self) -> bytes:
        """The event that is not ended; it is not kept any longer."""
        rest, self.rest = bytes(self.rest), bytearray()
        return rest


def data_of(event: bytes) -> bytes:
    """The data of an event, its lines joined."""
    return b"\n".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))


def event_of(value: Mapping[str, Any]) -> bytes:
    """An event with this value as its data."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def named_event_of(value: Mapping[str, Any]) -> bytes:
    """An event that is named after the type of its value."""
    return b"event: " + str(value["type"]).encode() + b"\n" + event_of(value)

"""Split a stream of server-sent events into events, and build events. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The last event of a Chat Completions stream.
END_OF_CHAT = b"data: [DONE]\n\n"
_BLANK_LINE = re.compile(rb"\n\r?\n")
# A blank line may begin this many bytes before the end of the earlier chunks.
_LONGEST_BEGINNING = 2


@dataclass
class EventStream:
    """Splits a stream chunk by chunk; `rest` holds the last, incomplete event."""

    rest: bytearray = field(default_factory=bytearray)

    def feed(self, piece: bytes) -> list[bytes]:
        """Add a chunk; return the events it completes, each with its blank line."""
        # Earlier chunks are not searched again: an event may come in thousands of chunks.
        search_from = max(0, len(self.rest) - _LONGEST_BEGINNING)
        self.rest += piece
        found, start = [], 0
        for end in [blank.end() for blank in _BLANK_LINE.finditer(self.rest, search_from)]:
            found.append(bytes(self.rest[start:end]))
            start = end
        del self.rest[:start]
        return found

    def take_rest(self) -> bytes:
        """Return the incomplete event and clear it."""
        rest, self.rest = bytes(self.rest), bytearray()
        return rest


def data_of(event: bytes) -> bytes:
    """Return the data of an event, its lines joined."""
    return b"\n".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))


def event_of(value: Mapping[str, Any]) -> bytes:
    """Serialize an event that has this value as its data."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def named_event_of(value: Mapping[str, Any]) -> bytes:
    """Serialize an event named after the `type` of its value."""
    return b"event: " + str(value["type"]).encode() + b"\n" + event_of(value)

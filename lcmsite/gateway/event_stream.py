"""Cut a stream of server-sent events where they end. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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

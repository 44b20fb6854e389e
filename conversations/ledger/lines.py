"""The lines of a ledger: how they are serialized, hashed and counted. Pure.

A line is one JSON object, in ASCII, without blanks. Its members are in the order of `line_shapes`; the last is the
`line_hash`: SHA-256 over the line_hash of the line before, as hexadecimal digits (none before the first line), and the
bytes of this line up to the comma before `"line_hash"`. docs/ledger.md specifies the format.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from conversations.ledger.types import Line, Tally

FORMAT = "lcm-ledger"
VERSION = 2

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_LAST_MEMBER = b',"line_hash":"'
T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def body_of(values: Mapping[str, Any]) -> bytes:
    """Serialize the part of a line that its line_hash covers."""
    return _ENCODER.encode(values)[:-1].encode("ascii")


def line_hash_of(body: bytes, *, previous: str) -> str:
    return hashlib.sha256(previous.encode("ascii") + body).hexdigest()


def line_of(body: bytes, line_hash: str) -> bytes:
    """Return the complete line, with its line feed."""
    return body + _LAST_MEMBER + line_hash.encode("ascii") + b'"}\n'


def body_in(line: bytes) -> bytes:
    """Return the part of a line that its line_hash covers."""
    return line.rpartition(_LAST_MEMBER)[0]


def as_text(moment: datetime) -> str:
    """Format a time as in a ledger: UTC with six digits of microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def as_moment(text: str) -> datetime:
    """Parse a time of a ledger; ValueError for another format."""
    moment = datetime.fromisoformat(text)
    if as_text(moment) != text:
        raise ValueError("not the format of times in a ledger")
    return moment


def batches(items: Iterable[T], size_of: Callable[[T], int], *, most: int, largest: int) -> Iterator[list[T]]:
    """Yield lists of up to `most` items and `largest` size; larger items alone."""
    batch: list[T] = []
    size = 0
    for item in items:
        size += size_of(item)
        if batch and (len(batch) == most or size > largest):
            yield batch
            batch, size = [], size_of(item)
        batch.append(item)
    if batch:
        yield batch


def microseconds(text: str) -> int:
    """Return the microseconds of a time since 1970, as they enter the chain_hash."""
    return (as_moment(text) - _EPOCH) // timedelta(microseconds=1)


# The field of the tally that counts each type of line.
_COUNTED = {
    "message": "messages",
    "part": "parts",
    "summary": "summaries",
    "session_summary": "session_summaries",
    "run": "runs",
    "boundary": "boundaries",
    "file": "files",
    "reference": "references",
}
_ONE = {kind: Tally(**{name: 1}) for kind, name in _COUNTED.items()}


@dataclass(frozen=True)
class LedgerState:
    """The state of a ledger so far, on which its next line and counts depend."""

    line_hash: str = ""
    lines: int = 0
    conversations: int = 0
    counts: Tally = Tally()
    # These values are of the current conversation, which has not ended yet.
    session_id: str | None = None
    counts_of_it: Tally = Tally()
    seq: int = 0

    def behind(self, values: Line, line_hash: str) -> LedgerState:
        """Return the state after one more line."""
        kind = values["type"]
        here = replace(self, line_hash=line_hash, lines=self.lines + 1)
        if kind == "conversation":
            return replace(here, session_id=values["session_id"], counts_of_it=Tally(), seq=0)
        if kind == "end":
            counts = self.counts + self.counts_of_it
            return replace(here, conversations=self.conversations + 1, counts=counts, session_id=None)
        seq = values["seq"] if kind == "message" else self.seq
        return replace(here, seq=seq, counts_of_it=self.counts_of_it + _ONE.get(kind, Tally()))


@dataclass
class LineWriter:
    """Serializes lines one after another, each with its line_hash."""

    place: LedgerState = LedgerState()

    def write(self, values: Line) -> bytes:
        body = body_of(values)
        line_hash = line_hash_of(body, previous=self.place.line_hash)
        self.place = self.place.behind(values, line_hash)
        return line_of(body, line_hash)

"""The lines of a ledger: how they are written, and how each one seals those before it. Pure.

A line is one JSON object, in ASCII, without blanks, its members in the order of `shapes`; the last member is the
`line_hash`: SHA-256 over the line_hash of the line before, as hexadecimal digits (none before the first line), and the
bytes of this line up to the comma before `"line_hash"`. docs/ledger.md tells it to strangers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

FORMAT = "lcm-ledger"
VERSION = 2

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_LAST_MEMBER = b',"line_hash":"'
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def body_of(values: Mapping[str, Any]) -> bytes:
    """The bytes of a line that its line_hash seals: everything before that last member."""
    return _ENCODER.encode(values)[:-1].encode("ascii")


def line_hash_of(body: bytes, *, previous: str) -> str:
    return hashlib.sha256(previous.encode("ascii") + body).hexdigest()


def line_of(body: bytes, line_hash: str) -> bytes:
    """The whole line, with its line feed."""
    return body + _LAST_MEMBER + line_hash.encode("ascii") + b'"}\n'


def body_in(line: bytes) -> bytes:
    """The part of a line that its line_hash seals."""
    return line.rpartition(_LAST_MEMBER)[0]


def as_text(moment: datetime) -> str:
    """A moment as a ledger says it: in UTC, with all six digits of the microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def as_moment(text: str) -> datetime:
    """The moment that a ledger says; ValueError for what is none."""
    moment = datetime.fromisoformat(text)
    if as_text(moment) != text:
        raise ValueError("not written as a ledger writes moments")
    return moment


def microseconds(moment: datetime) -> int:
    """Since 1970, as the chain seals them."""
    return (moment - _EPOCH) // timedelta(microseconds=1)

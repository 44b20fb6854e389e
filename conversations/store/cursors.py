"""Write and read short, signed cursors, valid only for the request they continue.

A cursor has at most 40 characters, except in lists ordered by name. It contains only the position. The request is part
of the signed data, so that any other request refuses the cursor.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from conversations.errors import Invalid

Value = int | str | datetime | None

_SIGNATURE = 6
# Maximum number of characters of a cursor.
LONGEST_CURSOR = 4000
# The type of a value: the two low bits of the number before it.
_NUMBER, _NEGATIVE, _TEXT, _OTHER = range(4)
# Subtypes of _OTHER: None, a time, and ids with one of the prefixes and eight bytes.
_NOTHING, _MOMENT, _FIRST_PREFIX = range(3)
_PREFIXES = (
    "sum_", "file_", "ses_", "run_", "plan_", "map_", "grant_", "receipt_", "report_", "repair_", "upload_", "job_",
)  # fmt: skip
_ID = re.compile(f"({'|'.join(_PREFIXES)})([0-9a-f]{{16}})")
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def write_cursor(position: Sequence[Value], *, of: str, request: str = "") -> str:
    """Write a signed cursor: a position in the list named `of`, for one request."""
    packed = b"".join(map(_packed, position))
    return _as_text(_signature(packed, of, request, settings.SECRET_KEY) + packed)


def read_cursor(cursor: str, *, of: str, request: str = "", refusal: str) -> list[Value]:
    """Return a cursor's position; Invalid (`bad_cursor`) for another request's."""
    signed = _as_bytes(cursor)
    signature, packed = signed[:_SIGNATURE], signed[_SIGNATURE:]
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    if not any(constant_time_compare(signature, _signature(packed, of, request, key)) for key in keys):
        raise bad_cursor(refusal)
    # The values need no checks: the signature is valid.
    return list(_unpacked(packed))


def unsigned_values(cursor: str) -> list[Value]:
    """Return a cursor's position without checking its signature; [] if malformed."""
    try:
        return list(_unpacked(_as_bytes(cursor)[_SIGNATURE:]))
    except (IndexError, ValueError, OverflowError):
        return []


def bad_cursor(sentence: str) -> Invalid:
    """Build the error for a cursor that is not accepted."""
    return Invalid(f"{sentence}; start again without a cursor.", code="bad_cursor")


def _signature(packed: bytes, of: str, request: str, key: str | bytes) -> bytes:
    signed = b"\n".join((request.encode("utf-8", "surrogatepass"), packed))
    return salted_hmac(f"lcm.cursor.{of}", signed, secret=key, algorithm="sha256").digest()[:_SIGNATURE]


def _as_text(signed: bytes) -> str:
    return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()


def _as_bytes(cursor: str) -> bytes:
    """Decode a cursor; empty if it is not the canonical encoding of any bytes."""
    if len(cursor) > LONGEST_CURSOR:
        return b""
    try:
        signed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except (binascii.Error, ValueError):
        return b""
    # Several texts decode to the same bytes; only the canonical one is accepted.
    return signed if _as_text(signed) == cursor else b""


def _packed(value: Value) -> bytes:
    match value:
        case None:
            return _number(_NOTHING, _OTHER)
        case datetime():
            return _number(_MOMENT, _OTHER) + _packed((value - _EPOCH) // _MICROSECOND)
        case int():
            return _number(abs(value), _NEGATIVE if value < 0 else _NUMBER)
    if named := _ID.fullmatch(value):
        return _number(_FIRST_PREFIX + _PREFIXES.index(named[1]), _OTHER) + bytes.fromhex(named[2])
    text = value.encode("utf-8", "surrogatepass")
    return _number(len(text), _TEXT) + text


def _number(number: int, kind: int) -> bytes:
    """Encode as a varint: seven bits a byte, lowest first, high bit if more follow."""
    number, written = number << 2 | kind, bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])


def _unpacked(packed: bytes) -> Iterator[Value]:
    place = 0

    def number() -> int:
        nonlocal place
        found, shift = 0, 0
        while True:
            byte = packed[place]
            found |= (byte & 127) << shift
            place, shift = place + 1, shift + 7
            if byte < 128:
                return found

    def taken(length: int) -> bytes:
        nonlocal place
        place += length
        return packed[place - length : place]

    while place < len(packed):
        value, kind = divmod(number(), 4)
        if kind in (_NUMBER, _NEGATIVE):
            yield -value if kind == _NEGATIVE else value
        elif kind == _TEXT:
            yield taken(value).decode("utf-8", "surrogatepass")
        elif value == _NOTHING:
            yield None
        elif value == _MOMENT:
            since, sign = divmod(number(), 4)
            yield _EPOCH + (-since if sign == _NEGATIVE else since) * _MICROSECOND
        else:
            yield _PREFIXES[value - _FIRST_PREFIX] + taken(8).hex()

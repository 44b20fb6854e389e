"""Hashes that show whether stored messages were altered. Pure.

content_hash = SHA-256 of the content's bytes (UTF-8; a lone surrogate as the three bytes it would have).
part_hash    = SHA-256 of the part's values as canonical JSON: its non-null columns, keys sorted, ASCII, no blanks.
entry_hash   = SHA-256 of role, author, content_hash and the part_hashes of the parts that came with the message.
metadata_hash = SHA-256 of the message's metadata as canonical JSON; None for a message without metadata.
record_hash  = SHA-256 of the other values of a message's row, as canonical JSON: see `record_hash`. None for a message
               from a ledger that has no record_hash for it.
chain_hash   = SHA-256 of the predecessor's chain_hash, entry_hash, created_at and recorded_at (microseconds since 1970,
               8 bytes each, big-endian), metadata_hash if there is one, and `record:` with record_hash if there is one
               (see sql/append.sql).
event_id     = a ULID: the milliseconds of recorded_at and the first 80 bits of chain_hash.
summary_hash = SHA-256 of the sources' hashes (joined by commas), a vertical bar, and the summary's text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any


def json_hash(value: Any) -> bytes:
    """Hash a value's canonical JSON."""
    return hashlib.sha256(_CANONICAL.encode(value).encode("ascii")).digest()


def content_hash(content: str) -> bytes:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()


def erased_key(key: str) -> str:
    """Return what replaces the key of an erased message (see sql/append.sql)."""
    return f"erased:{hashlib.sha256(key.encode()).hexdigest()}"


def part_hash(values: Mapping[str, Any]) -> bytes:
    """Hash a part's exact values by column name; null counts as absent."""
    return json_hash({name: value for name, value in values.items() if value is not None})


def metadata_hash(metadata: Mapping[str, Any]) -> bytes | None:
    """Hash a message's exact metadata; None if they are empty."""
    return json_hash(metadata) if metadata else None


def record_hash(
    *,
    idempotency_key: str | None,
    token_count: int,
    token_counter: str,
    keys: str | None = None,
    files: Sequence[Sequence[Any]] = (),
) -> bytes:
    """Hash what no other hash of a message covers; absent values are left out.

    `keys` is the result of `key_order`. `files` are the message's file entries, sorted by `file_references.in_order`.
    """
    sealed: dict[str, Any] = {"token_count": token_count, "token_counter": token_counter}
    if idempotency_key is not None:
        sealed["idempotency_key"] = idempotency_key
    if keys is not None:
        sealed["keys"] = keys
    if files:
        sealed["files"] = files
    return json_hash(sealed)


def key_order(metadata: Mapping[str, Any], parts: Iterable[tuple[Any, Any]]) -> str | None:
    """Hash the order of a message's JSON keys; None if they are sorted.

    `parts` holds the tool_input and the metadata of each part that came with the message. The other hashes sort keys,
    so that a retry with the keys in another order is the same message.
    """
    held = [metadata, *(list(pair) for pair in parts)]
    return None if _is_sorted(held) else hashlib.sha256(_AS_GIVEN.encode(held).encode("ascii")).hexdigest()


def _is_sorted(value: Any) -> bool:
    if isinstance(value, dict):
        keys = list(value)
        return keys == sorted(keys) and all(map(_is_sorted, value.values()))
    return not isinstance(value, list) or all(map(_is_sorted, value))


def event_id(*, recorded_at: datetime, chain_hash: bytes) -> str:
    """A message's ULID (https://github.com/ulid/spec), sorted by time of recording.

    Its random part is taken from chain_hash, so that the id needs no column, and a copy of the ledger has the same ids.
    """
    milliseconds = (recorded_at - _EPOCH) // timedelta(milliseconds=1)
    number = (milliseconds << 80) | int.from_bytes(chain_hash[:10], "big")
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


def _as_text(value: Any) -> str:
    if isinstance(value, Decimal):
        # 0.10 and 0.1 are the same price. Not `normalize`, which would round to 28 digits.
        text = format(value, "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        # The database knows no negative zero.
        return "0" if text == "-0" else text
    raise TypeError(f"{type(value).__name__} has no canonical JSON")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_as_text)
_AS_GIVEN = json.JSONEncoder(separators=(",", ":"))


def entry_hash(*, role: str, author: str | None, content: bytes, parts: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256(f"{role}\n{author or ''}\n".encode())
    digest.update(content)
    for part in parts:
        digest.update(part)
    return digest.digest()


def summary_hash(source_hashes: Iterable[str], text: str) -> bytes:
    return hashlib.sha256(f"{','.join(source_hashes)}|{text}".encode("utf-8", "surrogatepass")).digest()


def journal_text(entry: Any) -> str:
    """Serialize a journal entry as it is stored: JSON in ASCII, without blanks."""
    return json.dumps(entry, separators=(",", ":"), allow_nan=False)


def journal_hash(entry: Any) -> bytes:
    """Hash a journal entry: the SHA-256 of its stored text."""
    return hashlib.sha256(journal_text(entry).encode("ascii")).digest()

"""Hashes that let anybody see later whether what is stored is what was said. Pure.

content_hash = SHA-256 of the content's bytes (UTF-8; a lone surrogate as the three bytes it would have).
part_hash    = SHA-256 of the part's values as canonical JSON: its non-null columns, keys sorted, ASCII, no blanks.
entry_hash   = SHA-256 of role, author, content_hash and the part_hashes of the parts that came with the message.
chain_hash   = SHA-256 of the predecessor's chain_hash, entry_hash and the time of the message (see sql/append.sql).
summary_hash = SHA-256 of the sources' hashes, joined by commas, a bar, and the summary's text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any


def content_hash(content: str) -> bytes:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()


def part_hash(values: Mapping[str, Any]) -> bytes:
    """Of the exact values by column name; a null column counts as absent."""
    given = {name: value for name, value in values.items() if value is not None}
    return hashlib.sha256(_CANONICAL.encode(given).encode("ascii")).digest()


def _as_text(value: Any) -> str:
    if isinstance(value, Decimal):
        # 0.10 and 0.1 are one price.
        return format(value.normalize(), "f")
    raise TypeError(f"{type(value).__name__} has no canonical JSON")


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_as_text)


def entry_hash(*, role: str, author: str | None, content: bytes, parts: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256(f"{role}\n{author or ''}\n".encode())
    digest.update(content)
    for part in parts:
        digest.update(part)
    return digest.digest()


def summary_hash(source_hashes: Iterable[str], text: str) -> bytes:
    return hashlib.sha256(f"{','.join(source_hashes)}|{text}".encode("utf-8", "surrogatepass")).digest()

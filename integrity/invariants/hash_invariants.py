"""Invariants of hashes: stored values are the appended ones, bit for bit.

PostgreSQL computes a hash if it can write the same canonical JSON as `hashing`. Python computes the other hashes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from conversations.content import hashing
from conversations.content.flattening import searchable
from conversations.content.lossless_values import storable, storable_json
from conversations.sql import load
from conversations.store.read import files_of, parts_of
from conversations.types import PART_COLUMNS, NewPart, PartType
from integrity.invariants.invariant import (
    Found,
    count_findings,
    in_sql,
    invariant,
    stream_overlapped,
    stream_portions,
    stream_rows,
    violations,
)
from integrity.types import Finding, Severity

FILE = "integrity/hash_invariants.sql"
SQL = load(FILE)

ALTERED_RECORD = "its idempotency key, tokens, JSON key order or files do not match its record hash"
# The largest double. `jsonb` writes such a number as an integer with 309 digits.
LARGEST_FLOAT = sys.float_info.max


@invariant(Severity.CRITICAL)
def contents_match_their_hashes(conversation_ids: Sequence[int]) -> Found:
    """Every message's content_hash is the SHA-256 of its content's bytes."""
    return violations(SQL["contents_match_their_hashes"], conversation_ids) + count_findings(
        _altered_exact_contents(conversation_ids)
    )


def _altered_exact_contents(conversation_ids: Sequence[int]) -> Iterator[Finding]:
    """Check messages with exact values: texts that PostgreSQL cannot store unchanged."""
    for conversation_id, message_id, content, exact, content_hash, chained in stream_rows(
        SQL["exact_messages"], conversation_ids
    ):
        problem = None
        if not exact or exact.keys() - {"content", "metadata"}:
            problem = "its exact values name no column"
        elif hashing.content_hash(original := exact.get("content", content)) != bytes(content_hash):
            problem = "its exact content does not match its hash"
        elif content != storable(original):
            appended = [part for part in parts_of([message_id])[message_id] if part.ordinal < chained]
            if searched_text(original, appended, column=content) is None:
                problem = "its searchable content does not match its exact content"
        if problem:
            yield Finding(conversation_id, f"msg_{message_id}", problem)


def searched_text(content: str, parts: Iterable[NewPart], *, column: str) -> str | None:
    """Return the text from which a search column was made; None if from neither.

    Earlier versions left out the texts of file parts: such a column is accepted.
    """
    parts = [*parts]
    without = [replace(part, text_content=None) if part.part_type is PartType.FILE else part for part in parts]
    texts = (searchable(content, form) for form in (parts, without))
    return next((text for text in texts if storable(text) == column), None)


@invariant(Severity.CRITICAL)
def metadata_match_their_hashes(conversation_ids: Sequence[int]) -> Iterator[Finding]:
    """Every message's metadata_hash is the SHA-256 of its metadata, if it has any."""
    for conversation_id, message_id, metadata, exact, stored_hash in stream_rows(
        SQL["metadata_of_messages"], conversation_ids
    ):
        original = (exact or {}).get("metadata", json.loads(metadata))
        if hashing.metadata_hash(original) != (None if stored_hash is None else bytes(stored_hash)):
            yield Finding(conversation_id, f"msg_{message_id}", "its metadata does not match its hash")
        elif not _matches_exact(json.loads(metadata), original):
            yield Finding(conversation_id, f"msg_{message_id}", "its metadata does not match its exact values")


in_sql(
    FILE,
    Severity.CRITICAL,
    {
        "entries_match_their_hashes": "Every entry_hash seals a message's role, author, content and original parts.",
        "chains_are_unbroken": "Every chain_hash seals a message's hashes and times with its predecessor.",
        "summaries_match_their_hashes": "Every summary_hash seals a summary's text and the hashes of its sources.",
    },
)


@invariant(Severity.CRITICAL)
def parts_match_their_hashes(conversation_ids: Sequence[int]) -> Iterator[Finding]:
    """Every part's part_hash is the SHA-256 of its values."""
    for conversation_id, part_id, exact, part_hash, *columns in stream_overlapped(
        SQL["unproven_parts"], conversation_ids
    ):
        values = dict(zip(PART_COLUMNS, columns, strict=True))
        for name in ("tool_input", "metadata"):
            if values[name] is not None:
                values[name] = json.loads(values[name])
        if hashing.part_hash(values | exact if exact else values) != bytes(part_hash):
            yield Finding(conversation_id, part_id, "its values do not match its hash")
        elif exact is not None and not exact:
            yield Finding(conversation_id, part_id, "its exact values name no column")
        elif exact and not all(_matches_exact(values.get(name), value) for name, value in exact.items()):
            yield Finding(conversation_id, part_id, "its searchable values do not match its exact values")


def _matches_exact(column: Any, exact: Any) -> bool:
    """Whether a column holds the searchable form of an exact value."""
    return _comparable(column) == _comparable(storable_json(exact))


def _comparable(value: Any) -> Any:
    """Convert numbers to floats, because `jsonb` rewrites 1e23 as an integer."""
    if isinstance(value, dict):
        return {key: _comparable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_FLOAT:
        return float(value)
    return value


@invariant(Severity.CRITICAL)
def records_match_their_hashes(conversation_ids: Sequence[int]) -> Iterator[Finding]:
    """Every record_hash seals idempotency key, tokens, JSON key order and files.

    Messages from older versions of LCM have no record hash.
    """
    for portion in stream_portions(SQL["unproven_records"], conversation_ids):
        files = files_of(row[1] for row in portion)
        for conversation_id, message_id, stored_hash, key, tokens, counter, metadata, exact, parts in portion:
            record_hash = hashing.record_hash(
                idempotency_key=key,
                token_count=tokens,
                token_counter=counter,
                keys=hashing.key_order(
                    (exact or {}).get("metadata", json.loads(metadata)), map(_original, json.loads(parts or "[]"))
                ),
                files=files.get(message_id, []),
            )
            if record_hash != bytes(stored_hash):
                yield Finding(conversation_id, f"msg_{message_id}", ALTERED_RECORD)


def _original(texts: Sequence[str | None]) -> tuple[Any, Any]:
    """Return a part's original tool_input and metadata, from JSON texts."""
    tool_input, metadata, exact = (None if text is None else json.loads(text) for text in texts)
    exact = exact or {}
    return exact.get("tool_input", tool_input), exact.get("metadata", metadata)

"""Every part's values are what was said: its hash computed again, by the database wherever that can do it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from conversations.content import hashing
from conversations.content.lossless_values import storable_json
from conversations.models import PART_COLUMNS
from integrity.invariants.invariant import Found, counted, flowing, invariant
from integrity.types import Finding, Severity

# The largest number that a double holds: `jsonb` writes all of its 309 digits.
LARGEST = sys.float_info.max

_OBJECTS = ("tool_input", "metadata")


def _member(name: str) -> str:
    """A column as a member of canonical JSON, with the comma before it; null where the column is."""
    column = f"p.{name}"
    text = f"to_json({column})::text"
    if name == "step_cost":
        text = f"""'"' || trim_scale({column})::text || '"'"""
    if name in _OBJECTS:
        # It writes no blanks, and everything but nulls; the keys stay as `jsonb` has them, the shortest first.
        text = f"json_strip_nulls({column}::text::json)::text"
    return f"""',"{name}":' || {text}"""


# What `hashing.part_hash` hashes, put together by the database: the same for ASCII, and for objects whose keys stand in
# this order, too. A hash that fits proves the values, whoever computed it; one that does not fit proves nothing yet.
_CANONICAL = f"""'{{' || substr(concat({", ".join(_member(name) for name in sorted(PART_COLUMNS))}), 2) || '}}'"""

_UNPROVEN = f"""
    SELECT m.conversation_id, p.part_id, p.exact, p.part_hash, {", ".join(f"p.{name}" for name in PART_COLUMNS)}
    FROM message_parts p JOIN messages m USING (message_id)
    WHERE m.conversation_id = ANY(%(ids)s) AND m.cold_block_id IS NULL AND m.erased_by_id IS NULL
      AND (p.exact IS NOT NULL OR p.part_hash <> sha256(convert_to({_CANONICAL}, 'UTF8')))
"""


@invariant(Severity.CRITICAL, reads_texts=True)
def parts_match_their_hashes(conversation_ids: Sequence[int]) -> Found:
    """Every part's part_hash is the SHA-256 of its values."""
    return counted(_altered_parts(conversation_ids))


def _altered_parts(conversation_ids: Sequence[int]) -> Iterator[Finding]:
    for conversation_id, part_id, exact, part_hash, *columns in flowing(_UNPROVEN, conversation_ids):
        values = dict(zip(PART_COLUMNS, columns, strict=True))
        for name in _OBJECTS:
            if values[name] is not None:
                values[name] = json.loads(values[name])
        if hashing.part_hash(values | exact if exact else values) != bytes(part_hash):
            yield Finding(conversation_id, part_id, "its values are not what was hashed")
        elif exact is not None and not exact:
            yield Finding(conversation_id, part_id, "its exact values are of no column")
        elif exact and not all(_stands_for(values.get(name), value) for name, value in exact.items()):
            yield Finding(conversation_id, part_id, "its searchable values do not stand for what was said")


def _stands_for(column: Any, value: Any) -> bool:
    """Whether a column holds what it should where its exact value is kept beside it."""
    return _comparable(column) == _comparable(storable_json(value))


def _comparable(value: Any) -> Any:
    """The value with numbers as `jsonb` may have rewritten them: 1e23 comes back as a whole number."""
    if isinstance(value, dict):
        return {key: _comparable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST:
        return float(value)
    return value

"""Stored messages as records, by the thousand.

Read past the ORM: to make an instance of each row, and then a record of each instance, takes five times as long as all
the rest. Times come as text for the same reason.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from conversations.reading import array, rows
from conversations.types import MessageRecord, PartRecord, PartType, Role

R = TypeVar("R")

_MESSAGE_FIELDS = tuple(name for name in MessageRecord.__dataclass_fields__ if name != "parts")
_PART_FIELDS = tuple(PartRecord.__dataclass_fields__)

# Columns that are read as something else than what they are.
_READ_AS = {
    "role": "role::text",
    "part_type": "part_type::text",
    "created_at": "created_at::text",
    "content_hash": "encode(content_hash, 'hex')",
    "chain_hash": "encode(chain_hash, 'hex')",
    # What jsonb is to be read as depends on the connection; text is text.
    "metadata": "metadata::text",
    "tool_input": "tool_input::text",
}


def _columns(fields: Sequence[str]) -> str:
    return ", ".join(_READ_AS.get(field, field) for field in fields)


_MESSAGES = f"SELECT {_columns(_MESSAGE_FIELDS)}, exact FROM messages WHERE message_id = ANY(%s)"
_PARTS = f"""
    SELECT {_columns(_PART_FIELDS)}, exact FROM message_parts WHERE message_id = ANY(%s)
    ORDER BY message_id, ordinal
"""
_ROLES = {role.value: role for role in Role}
_PART_TYPES = {part_type.value: part_type for part_type in PartType}


def messages_of(message_ids: Sequence[int], *, with_parts: bool = True) -> list[MessageRecord]:
    """The messages with these ids, in this order; those that there are."""
    if not message_ids:
        return []
    ids = array(message_ids)
    parts = parts_of(message_ids) if with_parts else {}
    found = {}
    for *values, exact in rows(_MESSAGES, [ids]):
        stored = dict(zip(_MESSAGE_FIELDS, values, strict=True))
        stored["role"] = _ROLES[stored["role"]]
        stored["created_at"] = datetime.fromisoformat(stored["created_at"])
        stored["metadata"] = {} if stored["metadata"] == "{}" else json.loads(stored["metadata"])
        stored["parts"] = tuple(parts.get(stored["message_id"], ()))
        stored.update(exact or {})
        found[stored["message_id"]] = record(MessageRecord, stored)
    return [found[message_id] for message_id in message_ids if message_id in found]


def parts_of(message_ids: Iterable[int]) -> dict[int, list[PartRecord]]:
    """The parts of these messages, by message, in order."""
    found: dict[int, list[PartRecord]] = defaultdict(list)
    for *values, exact in rows(_PARTS, [array(message_ids)]):
        stored = dict(zip(_PART_FIELDS, values, strict=True))
        stored["part_type"] = _PART_TYPES[stored["part_type"]]
        for name in ("tool_input", "metadata"):
            if stored[name] is not None:
                stored[name] = json.loads(stored[name])
        stored.update(exact or {})
        if stored["patch_files"] is not None:
            stored["patch_files"] = tuple(stored["patch_files"])
        found[stored["message_id"]].append(record(PartRecord, stored))
    return found


def record(kind: type[R], values: dict[str, Any]) -> R:
    """A frozen record of values for all of its fields, made past the constructor that would set them one by one."""
    made = object.__new__(kind)
    made.__dict__.update(values)
    return made

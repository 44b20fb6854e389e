"""Reads what was selected and nothing else: messages with their parts as they came, summaries as a model sees them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from compaction.rendering import render_summary
from conversations.reading import array, rows
from conversations.types import ContextItemType, Level, PartRecord, PartType, Role, SummaryKind, SummaryRecord
from retrieval.assembly_types import AssembledItem
from retrieval.records import record
from retrieval.selection import Candidate

# Past the ORM, and with times as text: a context may hold a thousand messages or some hundred summaries, and making
# instances of them, or times the way Django has its connections do it, would take longer than all the rest.
_MESSAGES = """
    SELECT message_id, content, metadata, exact, author, created_at::text FROM messages WHERE message_id = ANY(%s)
"""
_COLUMNS = tuple(PartRecord.__dataclass_fields__)
_PLACE = {name: place for place, name in enumerate(_COLUMNS)}
# The part that compaction leaves on a message is a note of our own; nobody said it.
_PARTS = f"""
    SELECT {", ".join(_COLUMNS)}, exact FROM message_parts
    WHERE message_id = ANY(%s) AND (part_type = 'compaction' AND is_synthetic AND is_ignored) IS NOT TRUE
    ORDER BY message_id, ordinal
"""
_READ_SUMMARY: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "kind": ("kind", SummaryKind),
    "level": ("level", Level),
    "summary_hash": ("encode(summary_hash, 'hex')", str),
    **{name: (f"{name}::text", datetime.fromisoformat) for name in ("created_at", "earliest_at", "latest_at")},
}
# What is not shown of a summary is not read.
_SUMMARY_FIELDS = tuple(name for name in SummaryRecord.__dataclass_fields__ if name not in ("file_ids", "quality"))
_SUMMARIES = f"""
    SELECT {", ".join(_READ_SUMMARY.get(name, (name,))[0] for name in _SUMMARY_FIELDS)}
    FROM summaries WHERE summary_id = ANY(%s)
"""
_TYPE, _MESSAGE, _FILES = _PLACE["part_type"], _PLACE["message_id"], _PLACE["patch_files"]
_JSON = (_PLACE["tool_input"], _PLACE["metadata"])
PART_TYPES = {part_type.value: part_type for part_type in PartType}


def read_items(selected: Sequence[Candidate]) -> tuple[AssembledItem, ...]:
    """The items of these candidates, in their order; three queries at most."""
    message_ids = [candidate.message_id for candidate in selected if candidate.message_id is not None]
    messages = {row[0]: row[1:] for row in rows(_MESSAGES, [array(message_ids)])} if message_ids else {}
    parts = _parts(message_ids) if message_ids else {}
    summary_ids = [candidate.summary_id for candidate in selected if candidate.summary_id is not None]
    summaries = _summaries(summary_ids) if summary_ids else {}
    return tuple(
        _shown_message(candidate, messages[candidate.message_id], parts.get(candidate.message_id, ()))
        if candidate.message_id is not None
        else _shown_summary(candidate, summaries[candidate.summary_id or ""])
        for candidate in selected
    )


def _shown_message(candidate: Candidate, row: tuple[Any, ...], parts: Iterable[PartRecord]) -> AssembledItem:
    content, metadata, exact, author, created_at = row
    exact = exact or {}
    if "metadata" in exact:
        metadata = exact["metadata"]
    else:
        metadata = json.loads(metadata) if metadata != "{}" else {}
    values = {
        "id": candidate.id,
        "kind": ContextItemType.MESSAGE,
        "role": candidate.role,
        "first_seq": candidate.ordinal,
        "last_seq": candidate.ordinal,
        "tokens": candidate.tokens,
        "text": exact.get("content", content),
        "created_at": datetime.fromisoformat(created_at),
        "author": author,
        "metadata": metadata,
        "parts": tuple(parts),
        "is_recalled": candidate.is_recalled,
    }
    return record(AssembledItem, values.items())


def _shown_summary(candidate: Candidate, summary: SummaryRecord) -> AssembledItem:
    return AssembledItem(
        id=candidate.id,
        kind=ContextItemType.SUMMARY,
        role=Role.USER,
        first_seq=summary.first_seq,
        last_seq=summary.last_seq,
        tokens=candidate.tokens,
        text=render_summary(summary),
        created_at=summary.latest_at,
    )


def _summaries(summary_ids: Sequence[str]) -> dict[str, SummaryRecord]:
    found = {}
    for row in rows(_SUMMARIES, [summary_ids]):
        values = dict(zip(_SUMMARY_FIELDS, row, strict=True))
        for name, (_, read) in _READ_SUMMARY.items():
            values[name] = read(values[name])
        found[values["summary_id"]] = SummaryRecord(**values)
    return found


def _parts(message_ids: Sequence[int]) -> dict[int, list[PartRecord]]:
    found: dict[int, list[PartRecord]] = defaultdict(list)
    for row in rows(_PARTS, [array(message_ids)]):
        found[row[_MESSAGE]].append(_part(row))
    return found


def _part(row: tuple[Any, ...]) -> PartRecord:
    *values, exact = row
    values[_TYPE] = PART_TYPES[values[_TYPE]]
    for place in _JSON:
        # Django has told the driver to leave `jsonb` as it is.
        if values[place] is not None:
            values[place] = json.loads(values[place])
    for name, value in (exact or {}).items():
        values[_PLACE[name]] = value
    if values[_FILES] is not None:
        values[_FILES] = tuple(values[_FILES])
    return record(PartRecord, zip(_COLUMNS, values, strict=True))

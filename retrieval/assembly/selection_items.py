"""Reads what was selected and nothing else: messages with their parts as they came, summaries as a model sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, fields
from datetime import datetime
from typing import Any

from compaction.rendering import ERASED, render_summary
from conversations.cold import ColdTexts, cold_texts
from conversations.frozen import record
from conversations.reading import array, rows
from conversations.records import PART, PART_WIDTH, SAID, metadata_of, parts_in
from conversations.types import ContextItemType, Level, PartRecord, Role, SummaryKind, SummaryRecord
from retrieval.assembly.candidates import Candidate
from retrieval.assembly.types import AssembledItem

# Past the ORM, and with times as text: a context may hold a thousand messages or some hundred summaries, and making
# instances of them, or times the way Django has its connections do it, would take longer than all the rest.
#
# Messages and their parts are both texts with metadata, and so rows of one statement: a message is one without a kind.
_MESSAGES = f"""
    SELECT NULL AS part_id, message_id, NULL::integer AS ordinal, NULL, content, NULL, NULL, NULL, NULL, NULL,
           metadata::text, exact, NULL, author, created_at::text, cold_block_id, erased_by_id
    FROM messages WHERE message_id = ANY(%(ids)s)
    UNION ALL
    SELECT {PART}, NULL, NULL, NULL, NULL
    FROM message_parts WHERE message_id = ANY(%(ids)s) AND {SAID}
    ORDER BY message_id, ordinal
"""
_READ_SUMMARY: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "kind": ("kind", {each.value: each for each in SummaryKind}.__getitem__),
    "level": ("level", {each.value: each for each in Level}.__getitem__),
    "summary_hash": ("encode(summary_hash, 'hex')", str),
    **{name: (f"{name}::text", datetime.fromisoformat) for name in ("created_at", "earliest_at", "latest_at")},
}
# What a summary can do without is not shown of it, and so not read.
_NOT_SHOWN: dict[str, Any] = {
    each.name: each.default if each.default_factory is MISSING else each.default_factory()
    for each in fields(SummaryRecord)
    if each.name not in ("summary_id", "erased_by_id") and (each.default, each.default_factory) != (MISSING, MISSING)
}
_SUMMARY_FIELDS = tuple(name for name in SummaryRecord.__dataclass_fields__ if name not in _NOT_SHOWN)
_SUMMARIES = f"""
    SELECT {", ".join(_READ_SUMMARY.get(name, (name,))[0] for name in _SUMMARY_FIELDS)}
    FROM summaries WHERE summary_id = ANY(%s::text[])
"""


def read_items(selected: Sequence[Candidate]) -> tuple[AssembledItem, ...]:
    """The items of these candidates, in their order; two queries at most, and one more if some of them are cold."""
    message_ids = [candidate.message_id for candidate in selected if candidate.message_id is not None]
    found = rows(_MESSAGES, {"ids": array(message_ids)}) if message_ids else []
    messages = {row[1]: row for row in found if row[3] is None}
    cold = cold_texts([row[-2] for row in messages.values()])
    parts = parts_in([row[:PART_WIDTH] for row in found if row[3] is not None], cold=cold)
    summary_ids = [candidate.summary_id for candidate in selected if candidate.summary_id is not None]
    summaries = read_summary_records(summary_ids) if summary_ids else {}
    return tuple(
        _shown_message(candidate, messages[candidate.message_id], parts.get(candidate.message_id, ()), cold)
        if candidate.message_id is not None
        else _shown_summary(candidate, summaries[candidate.summary_id or ""])
        for candidate in selected
    )


def _shown_message(
    candidate: Candidate, row: tuple[Any, ...], parts: Iterable[PartRecord], cold: ColdTexts | None
) -> AssembledItem:
    _, message_id, _, _, content, _, _, _, _, _, metadata, exact, _, author, created_at, block_id, erased_by_id = row
    if block_id is not None and cold is not None:
        texts = cold.message(block_id, message_id)
        content, metadata, exact = texts.content, texts.metadata, texts.exactly
    values = {
        "id": candidate.id,
        "kind": ContextItemType.MESSAGE,
        "role": candidate.role,
        "first_seq": candidate.ordinal,
        "last_seq": candidate.ordinal,
        "tokens": candidate.tokens,
        # A text that was erased left its place: what came before and after it still reads as it was said.
        "text": content if erased_by_id is None else ERASED,
        "created_at": datetime.fromisoformat(created_at),
        "author": author,
        "metadata": metadata_of(metadata),
        "parts": tuple(parts),
        "is_recalled": candidate.is_recalled,
        "erased": erased_by_id is not None,
    }
    if exact:
        values["text"] = exact.get("content", content)
        values["metadata"] = exact.get("metadata", values["metadata"])
    return record(AssembledItem, values)


def _shown_summary(candidate: Candidate, summary: SummaryRecord) -> AssembledItem:
    values = {
        "id": candidate.id,
        "kind": ContextItemType.SUMMARY,
        "role": Role.USER,
        "first_seq": summary.first_seq,
        "last_seq": summary.last_seq,
        "tokens": candidate.tokens,
        "text": render_summary(summary),
        "created_at": summary.latest_at,
        "author": None,
        "metadata": {},
        "parts": (),
        "is_recalled": candidate.is_recalled,
        "erased": summary.erased_by_id is not None,
    }
    return record(AssembledItem, values)


def read_summary_records(summary_ids: Sequence[str]) -> dict[str, SummaryRecord]:
    """These summaries by id, as far as they are shown of."""
    found = {}
    # As one text: the driver would take longer over a list of them than the server over the summaries.
    for row in rows(_SUMMARIES, ["{" + ",".join(summary_ids) + "}"]):
        values = dict(zip(_SUMMARY_FIELDS, row, strict=True))
        for name, (_, read) in _READ_SUMMARY.items():
            values[name] = read(values[name])
        found[values["summary_id"]] = record(SummaryRecord, {**values, **_NOT_SHOWN})
    return found

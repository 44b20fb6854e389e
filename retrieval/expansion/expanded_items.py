"""The items of a page of an expansion, whole or sliced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.fast.records import record
from conversations.sql import load, rows, texts
from conversations.store.read import messages_of
from conversations.types import MessageRecord, SummaryKind
from retrieval.expansion.outline import Entry
from retrieval.slices import Slice, cost_of, views
from retrieval.types import ExpandedItem, ItemKind

_SQL = load("retrieval/expand.sql")


def items_of(entries: Sequence[Entry]) -> list[ExpandedItem]:
    """Read one item for each entry."""
    message_ids = [entry.message_id for entry in entries if entry.message_id is not None]
    messages = {each.message_id: each for each in messages_of(message_ids)} if message_ids else {}
    summary_ids = [entry.summary_id for entry in entries if entry.message_id is None]
    summaries = _summaries(summary_ids) if summary_ids else {}
    return [
        _summary(entry, summaries[entry.summary_id])
        if entry.message_id is None
        else _message(entry, messages[entry.message_id])
        for entry in entries
    ]


def _summaries(summary_ids: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    return {row[0]: row for row in rows(_SQL["summaries"], [texts(summary_ids)], binary=True)}


def sliced(whole: ExpandedItem, piece: Slice, *, parts_total: int) -> ExpandedItem:
    """A piece of the item as an item."""
    return replace(
        whole,
        tokens=piece.tokens,
        content=piece.content,
        complete=piece.is_last,
        content_offset=piece.content_offset,
        parts=(),
        parts_json=piece.parts_json,
        parts_offset=piece.parts_offset,
        parts_total=parts_total,
    )


def _summary(entry: Entry, row: tuple[Any, ...]) -> ExpandedItem:
    summary_id, kind, depth, content, created_at, first_seq, last_seq, descendant_count, erased = row
    return ExpandedItem(
        id=summary_id,
        kind=ItemKind.SUMMARY,
        of=entry.of,
        level=entry.level,
        first_seq=first_seq,
        last_seq=last_seq,
        tokens=entry.tokens + MESSAGE_OVERHEAD_TOKENS,
        content=content,
        created_at=created_at,
        content_total=len(content),
        summary_kind=SummaryKind(kind),
        depth=depth,
        descendant_count=descendant_count,
        erased=erased,
    )


def _message(entry: Entry, message: MessageRecord) -> ExpandedItem:
    parts = views(message.parts, message.content)
    values = {
        "id": message.id,
        "kind": ItemKind.MESSAGE,
        "of": entry.of,
        "level": entry.level,
        "first_seq": entry.seq,
        "last_seq": entry.seq,
        "tokens": entry.tokens + MESSAGE_OVERHEAD_TOKENS + cost_of(parts),
        "content": message.content,
        "created_at": message.created_at,
        "content_total": len(message.content),
        "role": message.role,
        "author": message.author,
        "parts": parts,
        "erased": message.erased_by_id is not None,
    }
    return record(ExpandedItem, values)

"""The items of a page of an expansion, whole or sliced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from conversations.cold_storage.cold_texts import cold_texts, until_settled
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.fast.records import record
from conversations.sql import array, load, rows, texts
from conversations.store.read import ROLES, parts_of
from conversations.types import SummaryKind
from retrieval.expansion.outline import Entry
from retrieval.slices import Slice, cost_of, views
from retrieval.types import ExpandedItem, ItemKind

_SQL = load("retrieval/expand.sql")


def items_of(entries: Sequence[Entry]) -> list[ExpandedItem]:
    """Read one item for each entry, with at most four statements."""
    of_messages = {entry.message_id: entry for entry in entries if entry.message_id is not None}
    of_summaries = {entry.summary_id: entry for entry in entries if entry.message_id is None}
    messages = until_settled(lambda: _messages(of_messages)) if of_messages else {}
    summaries = _summaries(of_summaries) if of_summaries else {}
    return [
        summaries[entry.summary_id] if entry.message_id is None else messages[entry.message_id] for entry in entries
    ]


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


def _summaries(entries: Mapping[str, Entry]) -> dict[str, ExpandedItem]:
    found = rows(_SQL["summaries"], [texts(entries)], binary=True)
    return {
        summary_id: ExpandedItem(
            id=summary_id,
            kind=ItemKind.SUMMARY,
            of=entries[summary_id].of,
            level=entries[summary_id].level,
            first_seq=first_seq,
            last_seq=last_seq,
            tokens=entries[summary_id].tokens + MESSAGE_OVERHEAD_TOKENS,
            content=content,
            created_at=created_at,
            content_total=len(content),
            summary_kind=SummaryKind(kind),
            depth=depth,
            descendant_count=descendant_count,
            erased=erased,
        )
        for summary_id, kind, depth, content, created_at, first_seq, last_seq, descendant_count, erased in found
    }


def _messages(entries: Mapping[int, Entry]) -> dict[int, ExpandedItem]:
    """Raises BlockGone, see `cold.until_settled`."""
    fetched = rows(_SQL["messages"], [array(entries)], binary=True)
    cold = cold_texts(row[-1] for row in fetched)
    contents: dict[int, str] = {}
    for message_id, _, content, _, _, _, exact, block_id in fetched:
        if block_id is not None and cold is not None:
            texts_of = cold.message(block_id, message_id)
            content, exact = texts_of.content, texts_of.exactly
        contents[message_id] = exact.get("content", content) if exact else content
    records = parts_of(entries, cold=cold)
    found = {}
    for message_id, role, _, created_at, author, erased, _, _ in fetched:
        seq, _, _, _, tokens, level, of = entries[message_id]
        content, parts = contents[message_id], views(records.get(message_id, ()), contents[message_id])
        values = {
            "id": f"msg_{message_id}",
            "kind": ItemKind.MESSAGE,
            "of": of,
            "level": level,
            "first_seq": seq,
            "last_seq": seq,
            "tokens": tokens + MESSAGE_OVERHEAD_TOKENS + cost_of(parts),
            "content": content,
            "created_at": created_at,
            "content_total": len(content),
            "role": ROLES[role],
            "author": author,
            "parts": parts,
            "erased": erased,
        }
        found[message_id] = record(ExpandedItem, values)
    return found

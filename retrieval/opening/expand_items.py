"""The items of a page of an expansion: what an entry's row says, whole or a slice of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from conversations.cold import ColdTexts, cold_texts, until_settled
from conversations.frozen import record
from conversations.reading import array, rows
from conversations.records import PART_TYPES, ROLES, TEXTS, has_only_texts, part_rows_of, parts_in
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS
from conversations.types import SummaryKind
from retrieval.opening.expand_outline import Entry
from retrieval.slices import PartView, Slice, as_json, cost_of, view_of, view_of_texts
from retrieval.types import ExpandedItem, ItemKind

# Past the ORM and past messages as records: a page holds thousands, and to make records of them and their parts, and
# views of those, takes as long again as all the rest.
_MESSAGES = """
    SELECT message_id, seq, role::text, content, token_count, created_at::text, author, erased_by_id IS NOT NULL,
           exact, cold_block_id
    FROM messages WHERE message_id = ANY(%s)
"""
_SUMMARIES = """
    SELECT summary_id, kind::text, depth, content, token_count, created_at, first_seq, last_seq, descendant_count,
           erased_by_id IS NOT NULL
    FROM summaries WHERE summary_id = ANY(%s)
"""


@dataclass(frozen=True)
class Items:
    """The values of items for a page's entries, each but for whose source it is; their tokens are those of its text."""

    messages: Mapping[int, Mapping[str, Any]]
    summaries: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, entries: Sequence[Entry]) -> Items:
        """Four queries at most, whatever the number of entries."""
        message_ids = [entry.message_id for entry in entries if entry.message_id is not None]
        summary_ids = [entry.summary_id for entry in entries if entry.message_id is None]
        return cls(
            messages=until_settled(lambda: _messages(message_ids)) if message_ids else {},
            summaries=_summaries(summary_ids) if summary_ids else {},
        )

    def whole(self, entry: Entry) -> ExpandedItem:
        """The entry as one item, with what it costs."""
        values = self._of(entry)
        tokens = values["tokens"] + cost_of(values["parts"])
        return record(ExpandedItem, {**values, "of": entry.of, "level": entry.level, "tokens": tokens})

    def texts(self, entry: Entry) -> tuple[str, str]:
        """The entry's content, and its parts as text: what slices are cut from."""
        values = self._of(entry)
        return values["content"], as_json(values["parts"])

    def sliced(self, entry: Entry, piece: Slice, *, parts_total: int) -> ExpandedItem:
        """The entry as an item that is a piece of it."""
        of_piece = {
            "of": entry.of,
            "level": entry.level,
            "tokens": piece.tokens,
            "complete": piece.is_last,
            "content": piece.content,
            "content_offset": piece.content_offset,
            "parts": (),
            "parts_json": piece.parts_json,
            "parts_offset": piece.parts_offset,
            "parts_total": parts_total,
        }
        return record(ExpandedItem, {**self._of(entry), **of_piece})

    def _of(self, entry: Entry) -> Mapping[str, Any]:
        return self.summaries[entry.summary_id] if entry.message_id is None else self.messages[entry.message_id]


def _summaries(summary_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {
        summary_id: {
            "id": summary_id,
            "kind": ItemKind.SUMMARY,
            "first_seq": first_seq,
            "last_seq": last_seq,
            "tokens": tokens + MESSAGE_OVERHEAD_TOKENS,
            "content": content,
            "content_total": len(content),
            "created_at": created_at,
            "parts": (),
            "summary_kind": SummaryKind(kind),
            "depth": depth,
            "descendant_count": descendant_count,
            "erased": erased,
        }
        for summary_id, kind, depth, content, tokens, created_at, first_seq, last_seq, descendant_count, erased in rows(
            _SUMMARIES, [summary_ids]
        )
    }


def _messages(message_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Raises BlockGone, see `cold.until_settled`."""
    found = rows(_MESSAGES, [array(message_ids)], binary=True)
    cold = cold_texts(row[-1] for row in found)
    contents: dict[int, str] = {}
    for message_id, _, _, content, _, _, _, _, exact, block_id in found:
        if block_id is not None and cold is not None:
            texts = cold.message(block_id, message_id)
            content, exact = texts.content, texts.exactly
        contents[message_id] = exact.get("content", content) if exact else content
    parts = _views(contents, cold)
    return {
        message_id: {
            "id": f"msg_{message_id}",
            "kind": ItemKind.MESSAGE,
            "first_seq": seq,
            "last_seq": seq,
            "tokens": tokens + MESSAGE_OVERHEAD_TOKENS,
            "content": contents[message_id],
            "content_total": len(contents[message_id]),
            "created_at": datetime.fromisoformat(created_at),
            "role": ROLES[role],
            "author": author,
            "parts": tuple(parts.get(message_id, ())),
            "erased": erased,
        }
        for message_id, seq, role, _, tokens, created_at, author, erased, _, _ in found
    }


def _views(contents: Mapping[int, str], cold: ColdTexts | None) -> dict[int, list[PartView]]:
    """The parts of these messages beside their contents."""
    fetched = part_rows_of(contents)
    strange = parts_in([row for row in fetched if not has_only_texts(row)], cold=cold)
    records = {part.part_id: part for parts in strange.values() for part in parts}
    found: dict[int, list[PartView]] = defaultdict(list)
    for message_id, ordinal, part_id, kind, *texts, _, _ in fetched:
        content = contents[message_id]
        found[message_id].append(
            view_of(records[part_id], content)
            if part_id in records
            else view_of_texts(ordinal, PART_TYPES[kind], zip(TEXTS, texts, strict=True), content)
        )
    return found

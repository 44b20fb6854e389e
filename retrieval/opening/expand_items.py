"""The items of a page of an expansion: what an entry's row says, whole or a slice of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from conversations.cold import ColdTexts, cold_texts, until_settled
from conversations.frozen import record
from conversations.reading import array, rows
from conversations.records import PART_TYPES, ROLES, TEXTS, has_only_texts, part_rows_of, parts_in
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS
from conversations.tokens import estimate
from conversations.types import Role, SummaryKind
from retrieval.opening.expand_outline import Entry
from retrieval.slices import PartView, Slice, as_json, view_of, view_of_texts
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


class MessageText(NamedTuple):
    seq: int
    role: Role
    content: str
    token_count: int
    created_at: datetime
    author: str | None
    erased: bool
    parts: tuple[PartView, ...]


@dataclass(frozen=True)
class SummaryText:
    summary_id: str
    kind: str
    depth: int
    content: str
    token_count: int
    created_at: datetime
    first_seq: int
    last_seq: int
    descendant_count: int
    erased: bool


@dataclass(frozen=True)
class Items:
    """The rows of a page's entries, and the items to be made of them."""

    messages: dict[int, MessageText]
    summaries: dict[str, SummaryText]

    @classmethod
    def read(cls, entries: Sequence[Entry]) -> Items:
        """Four queries at most, whatever the number of entries."""
        message_ids = [entry.id for entry in entries if isinstance(entry.id, int)]
        summary_ids = [entry.id for entry in entries if isinstance(entry.id, str)]
        summaries = [SummaryText(*row) for row in rows(_SUMMARIES, [summary_ids])] if summary_ids else []
        return cls(
            messages=until_settled(lambda: _messages(message_ids)) if message_ids else {},
            summaries={summary.summary_id: summary for summary in summaries},
        )

    def whole(self, entry: Entry) -> ExpandedItem:
        """The entry as one item, with what it costs."""
        if isinstance(entry.id, str):
            summary = self.summaries[entry.id]
            return _of_summary(entry, summary, {"tokens": summary.token_count + MESSAGE_OVERHEAD_TOKENS})
        message = self.messages[entry.id]
        content, parts = message.content, message.parts
        cost = message.token_count + MESSAGE_OVERHEAD_TOKENS + estimate(as_json(parts))
        return _of_message(entry, message, tokens=cost, content=content, content_total=len(content), parts=parts)

    def texts(self, entry: Entry) -> tuple[str, str]:
        """The entry's content, and its parts as text: what slices are cut from."""
        if isinstance(entry.id, str):
            return self.summaries[entry.id].content, ""
        message = self.messages[entry.id]
        return message.content, as_json(message.parts)

    def sliced(self, entry: Entry, piece: Slice, *, content_total: int, parts_total: int) -> ExpandedItem:
        """The entry as an item that is a piece of it."""
        given: dict[str, Any] = {
            "tokens": piece.tokens,
            "complete": piece.is_last,
            "content": piece.content,
            "content_offset": piece.content_offset,
            "content_total": content_total,
        }
        if isinstance(entry.id, str):
            return _of_summary(entry, self.summaries[entry.id], given)
        of_parts = {"parts_json": piece.parts_json, "parts_offset": piece.parts_offset, "parts_total": parts_total}
        return _of_message(entry, self.messages[entry.id], **given, **of_parts)


def _messages(message_ids: Sequence[int]) -> dict[int, MessageText]:
    """The messages by their ids, with their parts; raises BlockGone, see `cold.until_settled`."""
    found = rows(_MESSAGES, [array(message_ids)])
    cold = cold_texts(row[-1] for row in found)
    contents: dict[int, str] = {}
    for message_id, _, _, content, *_, exact, block_id in found:
        if block_id is not None and cold is not None:
            texts = cold.message(block_id, message_id)
            content, exact = texts.content, texts.exactly
        contents[message_id] = exact.get("content", content) if exact else content
    parts = _views(contents, cold)
    return {
        message_id: MessageText(
            seq,
            ROLES[role],
            contents[message_id],
            tokens,
            datetime.fromisoformat(created_at),
            author,
            erased,
            tuple(parts.get(message_id, ())),
        )
        for message_id, seq, role, _, tokens, created_at, author, erased, *_ in found
    }


def _views(contents: Mapping[int, str], cold: ColdTexts | None) -> dict[int, list[PartView]]:
    """The parts of these messages beside their contents."""
    fetched = part_rows_of(contents)
    strange = parts_in([row for row in fetched if not has_only_texts(row)], cold=cold)
    records = {part.part_id: part for parts in strange.values() for part in parts}
    found: dict[int, list[PartView]] = defaultdict(list)
    for part_id, message_id, ordinal, kind, *texts, _, _ in fetched:
        content = contents[message_id]
        found[message_id].append(
            view_of(records[part_id], content)
            if part_id in records
            else view_of_texts(ordinal, PART_TYPES[kind], zip(TEXTS, texts, strict=True), content)
        )
    return found


def _of_message(entry: Entry, message: MessageText, **given: Any) -> ExpandedItem:
    values = {
        "id": f"msg_{entry.id}",
        "kind": ItemKind.MESSAGE,
        "of": entry.of,
        "level": entry.level,
        "first_seq": message.seq,
        "last_seq": message.seq,
        "created_at": message.created_at,
        "role": message.role,
        "author": message.author,
        "erased": message.erased,
        **given,
    }
    return record(ExpandedItem, values)


def _of_summary(entry: Entry, summary: SummaryText, given: dict[str, Any]) -> ExpandedItem:
    values = {
        "id": summary.summary_id,
        "kind": ItemKind.SUMMARY,
        "of": entry.of,
        "level": entry.level,
        "first_seq": summary.first_seq,
        "last_seq": summary.last_seq,
        "content": summary.content,
        "content_total": len(summary.content),
        "created_at": summary.created_at,
        "summary_kind": SummaryKind(summary.kind),
        "depth": summary.depth,
        "descendant_count": summary.descendant_count,
        "erased": summary.erased,
        **given,
    }
    return record(ExpandedItem, values)

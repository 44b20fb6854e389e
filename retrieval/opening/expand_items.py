"""The items of a page of an expansion: what an entry's row says, whole or a slice of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from conversations.frozen import record
from conversations.reading import rows
from conversations.records import messages_of
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS
from conversations.tokens import estimate
from conversations.types import MessageRecord, SummaryKind
from retrieval.opening.expand_outline import Entry
from retrieval.slices import Slice, as_json, views
from retrieval.types import ExpandedItem, ItemKind

_SUMMARIES = """
    SELECT summary_id, kind::text, depth, content, token_count, created_at, first_seq, last_seq, descendant_count,
           erased_by_id IS NOT NULL
    FROM summaries WHERE summary_id = ANY(%s)
"""


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

    messages: dict[int, MessageRecord]
    summaries: dict[str, SummaryText]

    @classmethod
    def read(cls, entries: Sequence[Entry]) -> Items:
        """Four queries at most, whatever the number of entries."""
        message_ids = [entry.id for entry in entries if isinstance(entry.id, int)]
        summary_ids = [entry.id for entry in entries if isinstance(entry.id, str)]
        summaries = [SummaryText(*row) for row in rows(_SUMMARIES, [summary_ids])] if summary_ids else []
        return cls(
            messages={message.message_id: message for message in messages_of(message_ids)},
            summaries={summary.summary_id: summary for summary in summaries},
        )

    def whole(self, entry: Entry) -> ExpandedItem:
        """The entry as one item, with what it costs."""
        if isinstance(entry.id, str):
            summary = self.summaries[entry.id]
            return _of_summary(
                entry, summary, summary.content, {"tokens": summary.token_count + MESSAGE_OVERHEAD_TOKENS}
            )
        message = self.messages[entry.id]
        content = message.content
        parts = views(message.parts, content)
        cost = message.token_count + MESSAGE_OVERHEAD_TOKENS + estimate(as_json(parts))
        return _of_message(entry, message, content, {"tokens": cost, "parts": parts, "content_total": len(content)})

    def texts(self, entry: Entry) -> tuple[str, str]:
        """The entry's content, and its parts as text: what slices are cut from."""
        if isinstance(entry.id, str):
            return self.summaries[entry.id].content, ""
        message = self.messages[entry.id]
        return message.content, as_json(views(message.parts, message.content))

    def sliced(self, entry: Entry, piece: Slice, *, content_total: int, parts_total: int) -> ExpandedItem:
        """The entry as an item that is a piece of it."""
        given: dict[str, Any] = {
            "tokens": piece.tokens,
            "complete": piece.is_last,
            "content_offset": piece.content_offset,
            "content_total": content_total,
        }
        if isinstance(entry.id, str):
            return _of_summary(entry, self.summaries[entry.id], piece.content, given)
        given |= {"parts_json": piece.parts_json, "parts_offset": piece.parts_offset, "parts_total": parts_total}
        return _of_message(entry, self.messages[entry.id], piece.content, given)


def _of_message(entry: Entry, message: MessageRecord, content: str, given: dict[str, Any]) -> ExpandedItem:
    values = {
        "id": message.id,
        "kind": ItemKind.MESSAGE,
        "of": entry.of,
        "level": entry.level,
        "first_seq": message.seq,
        "last_seq": message.seq,
        "content": content,
        "created_at": message.created_at,
        "role": message.role,
        "author": message.author,
        "erased": message.erased_by_id is not None,
        **given,
    }
    return record(ExpandedItem, values)


def _of_summary(entry: Entry, summary: SummaryText, content: str, given: dict[str, Any]) -> ExpandedItem:
    values = {
        "id": summary.summary_id,
        "kind": ItemKind.SUMMARY,
        "of": entry.of,
        "level": entry.level,
        "first_seq": summary.first_seq,
        "last_seq": summary.last_seq,
        "content": content,
        "content_total": len(content),
        "created_at": summary.created_at,
        "summary_kind": SummaryKind(summary.kind),
        "depth": summary.depth,
        "descendant_count": summary.descendant_count,
        "erased": summary.erased,
        **given,
    }
    return record(ExpandedItem, values)

"""Opens summaries again, a page at a time, until every byte below them has been given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conversations.errors import Invalid
from conversations.models import Message, Summary
from conversations.scope import Scope
from conversations.store.base import EVERYTHING, MESSAGE_OVERHEAD_TOKENS
from conversations.tokens import TokenEstimator, estimate
from conversations.types import MessageRecord, Role, SummaryKind, SummaryRecord
from retrieval import cursors
from retrieval.cursors import Key, Position, Request
from retrieval.expand_outline import Entry, entries_below
from retrieval.policy import RetrievalPolicy
from retrieval.slices import Slice, as_json, slice_of, views
from retrieval.types import ExpandedItem, ExpandResult, ItemKind

DEEPEST = 1_000_000
_BEGINNING = Position(Key(0, -DEEPEST))


@dataclass(frozen=True)
class Expansion:
    """Reads what a summary was made from."""

    policy: RetrievalPolicy
    tokens: TokenEstimator
    scope: Scope = EVERYTHING

    def page(
        self, *, summary_id: str, depth: int, include_messages: bool, token_cap: int | None, cursor: str | None
    ) -> ExpandResult:
        """See `RetrievalEngine.expand`."""
        cap = self._cap(token_cap)
        if isinstance(depth, bool) or not isinstance(depth, int) or not (depth == -1 or 1 <= depth <= DEEPEST):
            raise Invalid(f"depth: {str(depth)[:80]!r} is not a number of levels from 1 up, or -1 for all.")
        root = self.scope.summary(summary_id)
        request = Request(summary_id, depth, bool(include_messages))
        position = cursors.read(cursor, request) if cursor is not None else _BEGINNING
        entries = entries_below(root, start=position.key, depth=depth, include_messages=request.include_messages)
        items, following = self._filled(entries, position, cap)
        return ExpandResult(
            summary_id=summary_id,
            conversation_id=root.conversation_id,
            depth=depth,
            include_messages=request.include_messages,
            items=tuple(items),
            tokens=sum(item.tokens for item in items),
            token_cap=cap,
            truncated=following is not None,
            cursor=cursors.written(request, following) if following is not None else None,
            messages_below=root.descendant_count,
            note=_note(root, request, items, following),
        )

    def _cap(self, token_cap: int | None) -> int:
        if token_cap is None:
            return self.policy.max_expand_tokens
        if isinstance(token_cap, bool) or not isinstance(token_cap, int) or token_cap < 1:
            raise Invalid(f"token_cap: {str(token_cap)[:80]!r} is not a whole number of tokens from 1 up.")
        return min(token_cap, self.policy.max_expand_tokens)

    def _filled(
        self, entries: Iterator[Entry], position: Position, cap: int
    ) -> tuple[list[ExpandedItem], Position | None]:
        """The items of a page, and where the next one begins."""
        planned, beyond = _planned(entries, position, cap)
        texts = _Texts.of(planned)
        items: list[ExpandedItem] = []
        room = cap
        for place, entry in enumerate(planned):
            begins = position if place == 0 and entry.key == position.key else Position(entry.key)
            whole = None if begins.is_inside else texts.whole(entry)
            if whole is not None and whole.tokens <= room:
                items.append(whole)
            elif items and not begins.is_inside:
                return items, begins
            else:
                item, following = self._sliced(entry, texts, begins, room)
                items.append(item)
                if following is not None:
                    return items, following
            room -= items[-1].tokens
        return items, Position(beyond.key) if beyond is not None else None

    def _sliced(self, entry: Entry, texts: _Texts, begins: Position, room: int) -> tuple[ExpandedItem, Position | None]:
        """The next slice of an item that does not fit, and where to go on with it."""
        content, parts_json = texts.both(entry)
        piece = slice_of(
            content,
            parts_json,
            content_offset=begins.content_offset,
            parts_offset=begins.parts_offset,
            budget=room,
            count=self.tokens.count,
        )
        item = texts.slice(entry, piece, content_total=len(content), parts_total=len(parts_json))
        if piece.is_last:
            return item, None
        return item, Position(
            entry.key, piece.content_offset + len(piece.content), piece.parts_offset + len(piece.parts_json)
        )


def _planned(entries: Iterator[Entry], position: Position, cap: int) -> tuple[list[Entry], Entry | None]:
    """As many entries as could fit by what their texts cost, at least one; and the one after them."""
    planned: list[Entry] = []
    total = 0
    for entry in entries:
        # Of one that is being sliced, nobody knows what is left.
        cost = 0 if position.is_inside and entry.key == position.key else entry.tokens
        if planned and total + cost > cap:
            return planned, entry
        planned.append(entry)
        total += cost
    return planned, None


@dataclass(frozen=True)
class _Texts:
    """The rows of a page's entries."""

    messages: dict[int, MessageRecord]
    summaries: dict[str, SummaryRecord]

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> _Texts:
        message_ids = [entry.id for entry in entries if entry.is_message]
        summary_ids = [entry.id for entry in entries if not entry.is_message]
        messages = Message.objects.filter(pk__in=message_ids).as_records() if message_ids else []
        summaries = list(Summary.objects.filter(pk__in=summary_ids).readable()) if summary_ids else []
        return cls(
            messages={message.message_id: message for message in messages},
            summaries={summary.summary_id: summary.as_record() for summary in summaries},
        )

    def whole(self, entry: Entry) -> ExpandedItem:
        """The entry as one item."""
        if isinstance(entry.id, str):
            summary = self.summaries[entry.id]
            return _summary_item(entry, summary, summary.content, tokens=summary.token_count + MESSAGE_OVERHEAD_TOKENS)
        message = self.messages[entry.id]
        parts = views(message.parts, message.content)
        return _message_item(
            entry,
            message,
            message.content,
            tokens=message.token_count + MESSAGE_OVERHEAD_TOKENS + estimate(as_json(parts)),
            parts=parts,
            content_total=len(message.content),
        )

    def both(self, entry: Entry) -> tuple[str, str]:
        """The entry's text, and its parts as text."""
        if isinstance(entry.id, str):
            return self.summaries[entry.id].content, ""
        message = self.messages[entry.id]
        return message.content, as_json(views(message.parts, message.content))

    def slice(self, entry: Entry, piece: Slice, *, content_total: int, parts_total: int) -> ExpandedItem:
        """The entry as an item that is a piece of it."""
        given = {
            "tokens": piece.tokens,
            "complete": piece.is_last,
            "content_offset": piece.content_offset,
            "content_total": content_total,
        }
        if isinstance(entry.id, str):
            return _summary_item(entry, self.summaries[entry.id], piece.content, **given)
        return _message_item(
            entry,
            self.messages[entry.id],
            piece.content,
            **given,
            parts_json=piece.parts_json,
            parts_offset=piece.parts_offset,
            parts_total=parts_total,
        )


def _message_item(entry: Entry, message: MessageRecord, content: str, **values: object) -> ExpandedItem:
    return ExpandedItem(
        id=message.id,
        kind=ItemKind.MESSAGE,
        of=entry.of,
        level=entry.level,
        first_seq=message.seq,
        last_seq=message.seq,
        content=content,
        created_at=message.created_at,
        role=Role(message.role),
        author=message.author,
        **values,  # type: ignore[arg-type]
    )


def _summary_item(entry: Entry, summary: SummaryRecord, content: str, **values: object) -> ExpandedItem:
    return ExpandedItem(
        id=summary.summary_id,
        kind=ItemKind.SUMMARY,
        of=entry.of,
        level=entry.level,
        first_seq=summary.first_seq,
        last_seq=summary.last_seq,
        content=content,
        created_at=summary.created_at,
        summary_kind=summary.kind,
        depth=summary.depth,
        descendant_count=summary.descendant_count,
        **{"content_total": len(summary.content), **values},  # type: ignore[arg-type]
    )


def _note(root: Summary, request: Request, items: Sequence[ExpandedItem], following: Position | None) -> str | None:
    if not request.include_messages and root.kind == SummaryKind.LEAF:
        return f"This summary was made from {root.descendant_count} messages; give include_messages to read them."
    if following is not None:
        return "There is more: expand with the same arguments and this cursor."
    return None

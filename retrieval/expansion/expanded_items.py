"""Fill the pages of an expansion with items; split items larger than a page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS, TokenEstimator
from conversations.fast.records import record
from conversations.sql import load, rows, texts
from conversations.store.read import messages_of
from conversations.types import MessageRecord, SummaryKind
from retrieval.expansion.outline import READ_AT_ONCE, Entry
from retrieval.slices import Slice, as_json, cost_of, slice_of, views
from retrieval.types import ExpandedItem, ItemKind

_SQL = load("retrieval/expand.sql")


def items_of(entries: Sequence[Entry], *, withheld: Collection[str]) -> list[ExpandedItem]:
    """Read one item for each entry; items in `withheld` have no text."""
    message_ids = [entry.message_id for entry in entries if entry.message_id is not None]
    messages = {each.message_id: each for each in messages_of(message_ids)} if message_ids else {}
    summary_ids = [entry.summary_id for entry in entries if entry.message_id is None]
    summaries = _summaries(summary_ids) if summary_ids else {}
    items = [
        _summary(entry, summaries[entry.summary_id])
        if entry.message_id is None
        else _message(entry, messages[entry.message_id])
        for entry in entries
    ]
    return [_without_text(item) if item.id in withheld else item for item in items]


def _without_text(item: ExpandedItem) -> ExpandedItem:
    return replace(
        item, tokens=MESSAGE_OVERHEAD_TOKENS, content="", content_total=0, author=None, parts=(), quarantined=True
    )


def _summaries(summary_ids: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    return {row[0]: row for row in rows(_SQL["summaries"], [texts(summary_ids)])}


def sliced(whole: ExpandedItem, piece: Slice, *, parts_total: int) -> ExpandedItem:
    """Copy the item, but with only this slice of its text."""
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
    summary_id, kind, depth, content, created_at, first_seq, last_seq, descendant_count, erased, earliest, latest = row
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
        earliest_at=earliest,
        latest_at=latest,
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


class Position(NamedTuple):
    """The start of a page: an item, and the offsets within its text and parts."""

    key: Any
    content_offset: int = 0
    parts_offset: int = 0

    @property
    def is_inside(self) -> bool:
        return self.content_offset > 0 or self.parts_offset > 0


class Placed(Protocol):
    """An entry that can be opened; `key` is its sort key."""

    @property
    def key(self) -> Any: ...
    @property
    def tokens(self) -> int: ...


@dataclass(frozen=True)
class Filling:
    """Fills pages from entries; `read` returns one item for each entry."""

    tokens: TokenEstimator
    read: Callable[[Sequence[Any]], list[ExpandedItem]]

    def filled(
        self, entries: Iterator[Placed], position: Position, cap: int
    ) -> tuple[list[ExpandedItem], Position | None]:
        """Return the items of a page, and the position of the next page, if there is one.

        Only an item larger than a whole page is split; it begins on this page if at least half of the page is free.
        """
        items: list[ExpandedItem] = []
        room = cap
        # The key of the item that the page begins inside, if any: the size of its remaining text is not known yet.
        begun = position.key if position.is_inside else None
        for entry, read_ahead in self._read_ahead(entries, cap, begun):
            if items and read_ahead is None and room < cap / 2:
                return items, Position(entry.key)
            whole = read_ahead or self.read([entry])[0]
            # An item begins the next page if it fits a whole page, but not the rest of this page or was not read ahead.
            if items and whole.tokens <= cap and (read_ahead is None or whole.tokens > room):
                return items, Position(entry.key)
            if whole.tokens <= room and entry.key != begun:
                items.append(whole)
            elif items and room < cap / 2:
                return items, Position(entry.key)
            else:
                begins = position if entry.key == begun else Position(entry.key)
                item, following = self._sliced(whole, begins, room)
                items.append(item)
                if following is not None:
                    return items, following
            room -= items[-1].tokens
        return items, None

    def beginning_of(self, entry: Placed, room: int) -> ExpandedItem:
        """The whole item, or the beginning of it that fits into `room` tokens."""
        [whole] = self.read([entry])
        return whole if whole.tokens <= room else self._sliced(whole, Position(entry.key), max(1, room))[0]

    def _sliced(self, whole: ExpandedItem, begins: Position, room: int) -> tuple[ExpandedItem, Position | None]:
        """Return the next slice of an item, and the position after it if more follows."""
        parts_json = as_json(whole.parts)
        piece = slice_of(
            whole.content,
            parts_json,
            content_offset=begins.content_offset,
            parts_offset=begins.parts_offset,
            budget=room,
            count=self.tokens.count,
        )
        given = Position(
            begins.key, piece.content_offset + len(piece.content), piece.parts_offset + len(piece.parts_json)
        )
        return sliced(whole, piece, parts_total=len(parts_json)), None if piece.is_last else given

    def _read_ahead(
        self, entries: Iterator[Placed], cap: int, begun: Any | None
    ) -> Iterator[tuple[Placed, ExpandedItem | None]]:
        """Yield each entry with its item, reading many items at once.

        Entries after the first `cap` tokens have no item: a page rarely has them, only after a long text was erased.
        """
        batch: list[Placed] = []
        total = 0
        for place, entry in enumerate(entries):
            if entry.key != begun:
                total += entry.tokens + MESSAGE_OVERHEAD_TOKENS
            is_behind = total > cap and place > 0
            if is_behind or len(batch) == READ_AT_ONCE:
                yield from zip(batch, self.read(batch), strict=True)
                batch = []
            if is_behind:
                yield entry, None
            else:
                batch.append(entry)
        if batch:
            yield from zip(batch, self.read(batch), strict=True)

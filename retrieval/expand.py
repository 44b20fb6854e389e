"""Opens summaries again, a page at a time, until every byte below them has been given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conversations.errors import Invalid
from conversations.models import Summary
from conversations.scope import Scope
from conversations.store.base import EVERYTHING
from conversations.tokens import TokenEstimator
from conversations.types import SummaryKind
from retrieval import cursors
from retrieval.cursors import Key, Position, Request
from retrieval.expand_items import Items
from retrieval.expand_outline import Entry, entries_below
from retrieval.policy import RetrievalPolicy
from retrieval.slices import slice_of
from retrieval.types import ExpandedItem, ExpandResult

DEEPEST = 1_000_000
# How many messages are looked up for a page: as many as it may hold, if they are shorter than most.
FEWEST_AT_ONCE, TOKENS_A_MESSAGE = 32, 64
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
        entries = entries_below(
            root,
            start=position.key,
            depth=depth,
            include_messages=request.include_messages,
            at_once=max(FEWEST_AT_ONCE, cap // TOKENS_A_MESSAGE),
        )
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
        rows = Items.read(planned)
        items: list[ExpandedItem] = []
        room = cap
        for place, entry in enumerate(planned):
            begins = position if place == 0 and entry.key == position.key else Position(entry.key)
            whole = None if begins.is_inside else rows.whole(entry)
            if whole is not None and whole.tokens <= room:
                items.append(whole)
            elif items and not begins.is_inside:
                return items, begins
            else:
                item, following = self._sliced(entry, rows, begins, room)
                items.append(item)
                if following is not None:
                    return items, following
            room -= items[-1].tokens
        return items, Position(beyond.key) if beyond is not None else None

    def _sliced(self, entry: Entry, rows: Items, begins: Position, room: int) -> tuple[ExpandedItem, Position | None]:
        """The next slice of an item that does not fit, and where to go on with it."""
        content, parts_json = rows.texts(entry)
        piece = slice_of(
            content,
            parts_json,
            content_offset=begins.content_offset,
            parts_offset=begins.parts_offset,
            budget=room,
            count=self.tokens.count,
        )
        item = rows.sliced(entry, piece, content_total=len(content), parts_total=len(parts_json))
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


def _note(root: Summary, request: Request, items: Sequence[ExpandedItem], following: Position | None) -> str | None:
    if not request.include_messages and root.kind == SummaryKind.LEAF:
        return f"This summary was made from {root.descendant_count} messages; give include_messages to read them."
    if following is not None:
        return "There is more: expand with the same arguments and this cursor."
    return None

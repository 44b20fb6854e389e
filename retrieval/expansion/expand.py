"""Expand summaries and ranges, page by page, down to every byte."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS, TokenEstimator
from conversations.humanize import counted
from conversations.models import Conversation, Summary
from conversations.models.conversation import today
from conversations.scope import EVERYTHING, Scope
from conversations.sql import rows, snapshot
from conversations.types import SummaryKind
from retrieval.describing.ranges import RangeExpansion, covering, range_of
from retrieval.expansion.expanded_items import items_of, sliced
from retrieval.expansion.outline import Entry, Key, Outline, below, messages_within, within
from retrieval.ids import Named
from retrieval.policy import RetrievalPolicy
from retrieval.search.page import bad_cursor, read_cursor, write_cursor
from retrieval.slices import as_json, slice_of
from retrieval.types import Description, ExpandedItem, ExpandResult, ItemKind, MessageSpan

# How many messages are looked up for a page in one go: about as many as it holds of most, and a few are soon read.
FEWEST_AT_ONCE, TOKENS_A_MESSAGE = 64, 128
# How many rows of a page are read at once; a page may end sooner, as its parts cost tokens of their own.
READ_AT_ONCE = 1000
_MORE = "There is more: expand with the same arguments and this cursor."
# In the cursor of a range, the moment whose context it goes through comes before this.
_MOMENT = "~"
_DIGITS = re.compile(r"[0-9]{1,17}")
# What a description of a message takes over from the page of its text.
_OF_A_PAGE = (
    "tokens", "content", "complete", "content_offset", "content_total", "parts", "parts_json", "parts_offset",
    "parts_total",
)  # fmt: skip


class Position(NamedTuple):
    """The item to go on with, and how much of it has been given."""

    key: Key
    content_offset: int = 0
    parts_offset: int = 0

    @property
    def is_inside(self) -> bool:
        return self.content_offset > 0 or self.parts_offset > 0


_BEGINNING = Position(Key(0, -(2**31)))


class Request(NamedTuple):
    """What a cursor belongs to: a summary, or a range as of a moment."""

    of: str
    depth: int
    include_messages: bool

    def cursor(self, position: Position) -> str:
        """The cursor for this position in this expansion."""
        return write_cursor(list(self), [*position.key, *position[1:]], of="expand")

    def position(self, cursor: str | None) -> Position:
        """The position of a cursor; Invalid (`bad_cursor`) if not of this request."""
        if cursor is None:
            return _BEGINNING
        mismatch = "This cursor belongs to another expansion, asked for otherwise, or what it goes through has changed"
        *key, content_offset, parts_offset = read_cursor(cursor, list(self), of="expand", mismatch=mismatch)
        return Position(Key(*key), content_offset, parts_offset)


class _Page(NamedTuple):
    """The items of a page, where the next one begins, and the gap, if any."""

    items: list[ExpandedItem]
    following: Position | None
    gap: MessageSpan | None = None


@dataclass(frozen=True)
class Expansion:
    """Reads what a summary was made from, or what a range of messages holds."""

    policy: RetrievalPolicy
    tokens: TokenEstimator
    scope: Scope = EVERYTHING

    def description(self, described: Description, *, token_cap: int | None, cursor: str | None) -> Description:
        """See `RetrievalEngine.describe`: a message gets a page of its text."""
        request = Request(described.id, 0, include_messages=True)
        position = request.position(cursor)
        if described.kind is not ItemKind.MESSAGE:
            return described
        number, seq = Named(described.kind, described.id).number, described.first_seq or 0
        entry = Entry(seq, 1, "", number, described.token_count or 0, 0, described.id)
        [item], following = self._filled(iter([entry]), position, self._cap(token_cap))
        given = {name: getattr(item, name) for name in _OF_A_PAGE}
        return replace(described, **given, cursor=request.cursor(following) if following is not None else None)

    def page(
        self,
        *,
        summary_id: str,
        depth: int,
        include_messages: bool,
        token_cap: int | None,
        keep_ends: bool,
        cursor: str | None,
    ) -> ExpandResult:
        """See `RetrievalEngine.expand`."""
        root = self.scope.summary(summary_id)
        request = Request(summary_id, depth, include_messages)
        outline = below(root, depth=depth, include_messages=include_messages)
        page = self._page(outline, request.position(cursor), self._cap(token_cap), keep_ends)
        if root.created_at.astimezone(UTC).date() < today():
            # A conversation in which something was made today was used today.
            Conversation.objects.filter(pk=root.conversation_id).mark_used()
        return ExpandResult(
            summary_id=summary_id,
            conversation_id=root.conversation_id,
            depth=depth,
            include_messages=include_messages,
            token_cap=self._cap(token_cap),
            cursor=request.cursor(page.following) if page.following is not None else None,
            messages_below=root.descendant_count,
            note=_note(root, request, page),
            **_given(page),
        )

    def range_page(
        self,
        *,
        conversation_id: int,
        from_seq: int,
        to_seq: int,
        depth: int,
        include_messages: bool,
        only_messages: bool,
        token_cap: int | None,
        keep_ends: bool,
        cursor: str | None,
    ) -> RangeExpansion:
        """See `RetrievalEngine.expand_range`."""
        include_messages = include_messages or only_messages
        with snapshot():
            moment, inner = (_now(), None) if cursor is None else _of_range(cursor)
            as_of = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=moment)
            stretch = range_of(conversation_id, from_seq, to_seq, scope=self.scope)
            if only_messages:
                outline = messages_within(stretch)
            else:
                roots = [summary.summary_id for summary, _ in covering(stretch, as_of=as_of)]
                outline = within(stretch, roots, as_of=as_of, depth=depth, include_messages=include_messages)
            # Its signature is over the moment, too, and over what the context was then: the two are as we wrote them.
            request = Request(f"{from_seq}-{to_seq} of {outline.name} at {moment}", depth, include_messages)
            page = self._page(outline, request.position(inner), self._cap(token_cap), keep_ends)
        stretch.conversation.note_use()
        following = None if page.following is None else f"{moment}{_MOMENT}{request.cursor(page.following)}"
        return RangeExpansion(
            conversation_id=conversation_id,
            from_seq=from_seq,
            to_seq=to_seq,
            depth=depth,
            include_messages=include_messages,
            only_messages=only_messages,
            token_cap=self._cap(token_cap),
            cursor=following,
            note=_MORE if following is not None else stretch.beyond_the_end,
            **_given(page),
        )

    def _cap(self, token_cap: int | None) -> int:
        return min(token_cap or self.policy.max_expand_tokens, self.policy.max_expand_tokens)

    def _page(self, outline: Outline, position: Position, cap: int, keep_ends: bool) -> _Page:
        at_once = max(FEWEST_AT_ONCE, cap // TOKENS_A_MESSAGE)
        if not outline.is_shallow:
            at_once = min(at_once, READ_AT_ONCE)
        items, following = self._filled(outline.entries(start=position.key, at_once=at_once), position, cap)
        last = outline.last_entry() if keep_ends and following is not None and cap > 1 else None
        if following is None or last is None or last.key == following.key:
            # Nothing is left out, or what is left out is of the last item alone.
            return _Page(items, following)
        end = self._beginning_of(last, cap // 2)
        items, following = self._filled(
            outline.entries(start=position.key, at_once=at_once), position, cap - end.tokens
        )
        # With less room it stops no later than before.
        begins = following.key.seq if following is not None else last.seq
        return _Page([*items, end], following, MessageSpan(begins, max(begins, last.seq - 1)))

    def _beginning_of(self, entry: Entry, room: int) -> ExpandedItem:
        """The item whole, or as much of its beginning as the room holds."""
        [whole] = items_of([entry])
        return whole if whole.tokens <= room else self._sliced(whole, Position(entry.key), max(1, room))[0]

    def _filled(
        self, entries: Iterator[Entry], position: Position, cap: int
    ) -> tuple[list[ExpandedItem], Position | None]:
        """The items of a page, and where the next one begins."""
        items: list[ExpandedItem] = []
        room = cap
        # The one that is being sliced is the first; what is left of it is not known yet.
        begun = position.key if position.is_inside else None
        for entry, whole in _read_ahead(entries, cap, begun):
            if whole is not None and whole.tokens <= room and entry.key != begun:
                items.append(whole)
            elif items or whole is None:
                return items, Position(entry.key)
            else:
                item, following = self._sliced(whole, position if begun else Position(entry.key), room)
                items.append(item)
                if following is not None:
                    return items, following
            room -= items[-1].tokens
        return items, None

    def _sliced(self, whole: ExpandedItem, begins: Position, room: int) -> tuple[ExpandedItem, Position | None]:
        """The next slice of an item that does not fit, and where to go on with it."""
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


def _read_ahead(entries: Iterator[Entry], cap: int, begun: Key | None) -> Iterator[tuple[Entry, ExpandedItem | None]]:
    """Each entry with its item, many of them read at once.

    The first behind the cap ends them and comes unread, unless it is alone.
    """
    batch: list[Entry] = []
    total = 0
    for place, entry in enumerate(entries):
        if entry.key != begun:
            total += entry.tokens + MESSAGE_OVERHEAD_TOKENS
        is_behind = total > cap and place > 0
        if is_behind or len(batch) == READ_AT_ONCE:
            yield from zip(batch, items_of(batch), strict=True)
            batch = []
        if is_behind:
            yield entry, None
            return
        batch.append(entry)
    if batch:
        yield from zip(batch, items_of(batch), strict=True)


def _given(page: _Page) -> dict[str, Any]:
    """What the pages of a summary and of a range have in common."""
    return {
        "items": tuple(page.items),
        "tokens": sum(item.tokens for item in page.items),
        "truncated": page.following is not None,
        "gap": page.gap,
    }


def _now() -> int:
    # The database's clock, by which summaries are dated, in microseconds.
    return int(rows("SELECT (extract(epoch FROM now()) * 1000000)::bigint")[0][0])


def _of_range(cursor: str) -> tuple[int, str]:
    """The moment in the cursor of a range, and the rest of it, which alone is signed."""
    moment, _, rest = cursor.partition(_MOMENT)
    if not _DIGITS.fullmatch(moment):
        raise bad_cursor("This is not a cursor that expand gave for a range, or it was changed")
    return int(moment), rest


def _note(root: Summary, request: Request, page: _Page) -> str | None:
    if not request.include_messages and root.kind == SummaryKind.LEAF:
        made_from = counted(root.descendant_count, "message")
        return f"This summary was made from {made_from}; give include_messages to read them."
    return _MORE if page.following is not None else None

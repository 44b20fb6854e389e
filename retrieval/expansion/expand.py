"""Expand summaries and ranges in pages, down to the exact text of every message."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, cast

from compaction.sources import withheld_in, withheld_items
from conversations.humanize import counted
from conversations.models import Conversation, Summary
from conversations.models.conversation import today
from conversations.sql import rows, snapshot
from conversations.store.cursors import bad_cursor, read_cursor, unsigned_values, write_cursor
from conversations.store.paths import WHOLE, path_at
from retrieval.describing.ranges import RangeExpansion, covering, range_of
from retrieval.expansion.expanded_items import Filling, Position, items_of
from retrieval.expansion.outline import Entry, Key, Outline, below, messages_within, within
from retrieval.ids import Named
from retrieval.policy import RetrievalPolicy
from retrieval.reader import Reader
from retrieval.types import Description, ExpandedItem, ExpandResult, ItemKind, MessageSpan

MORE = "There is more: expand with the same arguments and this cursor."
_REFUSAL = (
    "This is not a cursor that expand gave for the same arguments, or it was changed, or what it goes through has "
    "changed"
)
# The fields that the description of a message gets from a page of its text.
_OF_A_PAGE = (
    "tokens", "content", "complete", "content_offset", "content_total", "parts", "parts_json", "parts_offset",
    "parts_total",
)  # fmt: skip


# The position at which every expansion begins: before all items.
BEGINNING = Position(Key(0, -(2**31)))


class Request(NamedTuple):
    """The request that a cursor belongs to: for a summary, or a range as of a moment."""

    of: str
    depth: int
    include_messages: bool
    as_of: datetime | None = None

    def cursor(self, position: Position) -> str:
        """Write the signed cursor for this position in this expansion."""
        return write_cursor([self.as_of, *position.key, *position[1:]], of="expand", request=repr(self[:3]))

    def position(self, cursor: str | None) -> Position:
        """Read a cursor; raises Invalid (`bad_cursor`) if it is of another request."""
        if cursor is None:
            return BEGINNING
        values: list[Any] = read_cursor(cursor, of="expand", request=repr(self[:3]), refusal=_REFUSAL)
        _, *key, content_offset, parts_offset = values
        return Position(Key(*key), content_offset, parts_offset)


class _Page(NamedTuple):
    """The items of a page, the position of the next page, and the gap, if any."""

    items: list[ExpandedItem]
    following: Position | None
    gap: MessageSpan | None = None


@dataclass(frozen=True)
class Expansion(Reader):
    """Reads the sources of a summary, or the contents of a range, in pages."""

    def description(self, described: Description, *, token_cap: int | None, cursor: str | None) -> Description:
        """Add a page of text to a description of a message; return others unchanged."""
        request = Request(described.id, 0, include_messages=True)
        position = request.position(cursor)
        if described.kind is not ItemKind.MESSAGE:
            return described
        number, seq = Named(described.kind, described.id).number, described.first_seq or 0
        entry = Entry(seq, 1, "", number, described.token_count or 0, 0, described.id)
        filling = self._filling([described.id] if described.quarantined else ())
        [item], following = filling.filled(iter([entry]), position, page_cap(self.policy, token_cap))
        given = {name: getattr(item, name) for name in _OF_A_PAGE}
        return replace(described, **given, cursor=request.cursor(following) if following is not None else None)

    def expand(
        self,
        *,
        summary_id: str,
        depth: int = 1,
        include_messages: bool = False,
        token_cap: int | None = None,
        keep_ends: bool = False,
        cursor: str | None = None,
    ) -> ExpandResult:
        """Open a summary: a page of its sources, in order, within `token_cap` tokens.

        `depth` is the number of levels to open; -1 opens all. `next_cursor` continues exactly where the page stopped,
        so that every byte can be read. With `keep_ends`, a page that cannot hold everything still ends with the very
        last item; `gap` names the skipped messages, and the cursor continues at the start of the gap. Raises NotFound;
        Invalid `bad_cursor` for a cursor of another expansion.
        """
        root = self.scope.summary(summary_id)
        request = Request(summary_id, depth, include_messages)
        outline = below(root, depth=depth, include_messages=include_messages)
        filling = self._filling(withheld_in([root.conversation_id]))
        page = self._page(outline, filling, request.position(cursor), page_cap(self.policy, token_cap), keep_ends)
        if root.created_at.astimezone(UTC).date() < today():
            # Creating a summary marks the conversation as used. If that was today, it need not be marked again.
            Conversation.objects.filter(pk=root.conversation_id).mark_used()
        return ExpandResult(
            summary_id=summary_id,
            conversation_id=root.conversation_id,
            depth=depth,
            include_messages=include_messages,
            token_cap=page_cap(self.policy, token_cap),
            cursor=request.cursor(page.following) if page.following is not None else None,
            messages_below=root.descendant_count,
            note=_note(root, request, page),
            **_shared_fields(page),
        )

    def expand_range(
        self,
        *,
        conversation_id: int,
        from_seq: int,
        to_seq: int,
        depth: int = 1,
        include_messages: bool = False,
        only_messages: bool = False,
        token_cap: int | None = None,
        keep_ends: bool = False,
        cursor: str | None = None,
    ) -> RangeExpansion:
        """Open a range of messages: a page in order, within `token_cap` tokens.

        Level 1 is the active context, in which summaries replace older messages. `depth` is the number of levels to
        open; -1 opens all. `include_messages` adds the messages of these levels. `only_messages` returns every message
        of the range and no summaries. The cursor and `keep_ends` work as in `expand`. All pages use the context as it
        was at the first page, even if a compaction changes it meanwhile. Raises NotFound; Invalid if `to_seq` is before
        `from_seq`; Invalid `bad_cursor` for a cursor of another expansion.
        """
        include_messages = include_messages or only_messages
        with snapshot():
            as_of = _now() if cursor is None else _moment_of(cursor)
            stretch = range_of(conversation_id, from_seq, to_seq, scope=self.scope)
            path = path_at(conversation_id, as_of) if stretch.conversation.moves and not only_messages else WHOLE
            found = [] if only_messages else covering(stretch, path, as_of=as_of)
            if only_messages:
                outline = messages_within(stretch)
            else:
                roots = [summary.summary_id for summary, _ in found]
                outline = within(stretch, roots, path, as_of=as_of, depth=depth, include_messages=include_messages)
            # The signature of the cursor covers the moment and the context at that moment, so neither can be forged.
            request = Request(f"{from_seq}-{to_seq} of {outline.name}", depth, include_messages, as_of)
            filling = self._filling(withheld_items(conversation_id) if stretch.conversation.quarantined else ())
            page = self._page(outline, filling, request.position(cursor), page_cap(self.policy, token_cap), keep_ends)
        stretch.conversation.note_use()
        following = None if page.following is None else request.cursor(page.following)
        summarized = None if include_messages else sum(covered for _, covered in found)
        return RangeExpansion(
            conversation_id=conversation_id,
            from_seq=from_seq,
            to_seq=to_seq,
            depth=depth,
            include_messages=include_messages,
            only_messages=only_messages,
            token_cap=page_cap(self.policy, token_cap),
            cursor=following,
            note=MORE if following is not None else stretch.note(path, summarized=summarized),
            **_shared_fields(page),
        )

    def _filling(self, withheld: Collection[str]) -> Filling:
        return Filling(self.tokens, partial(items_of, withheld=withheld))

    def _page(self, outline: Outline, filling: Filling, position: Position, cap: int, keep_ends: bool) -> _Page:
        items, following = filling.filled(outline.entries(start=position.key, cap=cap), position, cap)
        last = outline.last_entry() if keep_ends and following is not None and cap > 1 else None
        if following is None or last is None or last.key == following.key:
            # There is no next page, or it only has the rest of the last item.
            return _Page(items, following)
        end = filling.beginning_of(last, cap // 2)
        items, following = filling.filled(outline.entries(start=position.key, cap=cap), position, cap - end.tokens)
        # With fewer tokens for it, this part of the page ends at the same position or earlier.
        begins = following.key.seq if following is not None else last.seq
        return _Page([*items, end], following, MessageSpan(begins, max(begins, last.seq - 1)))


def page_cap(policy: RetrievalPolicy, requested: int | None) -> int:
    """The maximum number of tokens of a page: as requested, if that is allowed."""
    return min(requested or policy.max_expand_tokens, policy.max_expand_tokens)


def _shared_fields(page: _Page) -> dict[str, Any]:
    """The fields that a page of a summary and a page of a range have in common."""
    return {
        "items": tuple(page.items),
        "tokens": sum(item.tokens for item in page.items),
        "truncated": page.following is not None,
        "gap": page.gap,
    }


def _now() -> datetime:
    # The time of the database, because the times of summaries come from it.
    [[now]] = rows("SELECT statement_timestamp()")
    return cast(datetime, now)


def _moment_of(cursor: str) -> datetime:
    """The moment in the cursor of a range; the context is read as of this moment."""
    values = unsigned_values(cursor)
    if not values or not isinstance(values[0], datetime):
        raise bad_cursor(_REFUSAL)
    return values[0]


def _note(root: Summary, request: Request, page: _Page) -> str | None:
    if page.following is not None:
        return MORE
    if request.include_messages or not (sources := root.message_links.count()):
        return None
    also = "also " if page.items else ""
    return f"This summary was {also}made from {counted(sources, 'message')}; give include_messages to read them."

"""Opens a summary: its sources a layer at a time, or everything below it, a page at a time until the last byte is out.

The walk goes down before it goes on, in the order of the conversation. A cursor holds the way from the root to where
the page stopped, so that the next page costs what it shows and not what was shown before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from conversations.errors import Invalid
from conversations.models import Message
from conversations.querysets import parts_of
from conversations.reading import rows, snapshot
from conversations.scope import Scope
from conversations.store.base import EVERYTHING
from conversations.tokens import TokenEstimator
from conversations.types import MessageRecord, PartRecord, PartType, SummaryKind
from retrieval.cursors import pack, unpack
from retrieval.policy import RetrievalPolicy
from retrieval.slices import parts_as_json, prefix_of
from retrieval.types import ExpandedItem, ExpandResult, ItemKind

ALL_THE_WAY = -1
_PURPOSE = "expand"

# Outlines are read this many at a time: a page of the usual size seldom shows more.
_BATCH = 48

_SOURCES = """
    SELECT 'summary', s.summary_id, s.first_seq, s.last_seq, s.token_count, s.kind::text, s.depth, s.descendant_count
    FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id
    WHERE p.summary_id = %(summary_id)s
    UNION ALL
    SELECT 'message', m.message_id::text, m.seq, m.seq, m.token_count, NULL, NULL, NULL
    FROM summary_messages l JOIN messages m ON m.message_id = l.message_id
    WHERE l.summary_id = %(summary_id)s AND %(include_messages)s
    ORDER BY 3, 1
    OFFSET %(skip)s LIMIT %(limit)s
"""
_DIRECT_MESSAGES = "SELECT count(*) FROM summary_messages WHERE summary_id = %s"


@dataclass
class Step:
    """A summary on the way from the root, and how many of its sources are behind us."""

    summary_id: str
    passed: int = 0


@dataclass(frozen=True)
class Outline:
    """A source as the walk meets it, its text not yet read."""

    kind: ItemKind
    id: str
    first_seq: int
    last_seq: int
    tokens: int
    summary_kind: SummaryKind | None
    depth: int | None
    descendant_count: int | None


@dataclass
class Walk:
    """Where an expansion stands: the way down, and how much of the next message has been given already."""

    way: list[Step]
    depth: int
    include_messages: bool
    content_offset: int = 0
    parts_offset: int = 0
    unopened_messages: int = 0
    _ahead: dict[str, list[Outline]] = field(default_factory=dict)

    def next(self) -> tuple[str, int, Outline] | None:
        """The next source, with the summary it is a source of and its level below the root; None at the end."""
        while self.way:
            step = self.way[-1]
            ahead = self._ahead.get(step.summary_id)
            if not ahead:
                if step.passed == 0 and ahead is None and not self.include_messages:
                    ((direct,),) = rows(_DIRECT_MESSAGES, [step.summary_id])
                    self.unopened_messages += direct
                ahead = self._ahead[step.summary_id] = self._read(step)
            if ahead:
                return step.summary_id, len(self.way), ahead[0]
            self.way.pop()
        return None

    def messages_ahead(self, *, room: int) -> list[int]:
        """The messages that come next without a summary between them, as far as they may fit."""
        coming: list[int] = []
        for outline in self._ahead[self.way[-1].summary_id]:
            if outline.kind is not ItemKind.MESSAGE or (coming and outline.tokens > room):
                break
            coming.append(int(outline.id))
            room -= outline.tokens
        return coming

    def pass_by(self) -> None:
        """The next source has been given, to its end; go down into it, or on."""
        step = self.way[-1]
        outline = self._ahead[step.summary_id].pop(0)
        step.passed += 1
        self.content_offset = self.parts_offset = 0
        if outline.kind is ItemKind.SUMMARY and (self.depth == ALL_THE_WAY or len(self.way) < self.depth):
            self.way.append(Step(outline.id))

    def _read(self, step: Step) -> list[Outline]:
        found = rows(
            _SOURCES,
            {
                "summary_id": step.summary_id,
                "include_messages": self.include_messages,
                "skip": step.passed,
                "limit": _BATCH,
            },
        )
        return [
            Outline(
                kind=ItemKind(kind),
                id=id,
                first_seq=first_seq,
                last_seq=last_seq,
                tokens=tokens,
                summary_kind=None if summary_kind is None else SummaryKind(summary_kind),
                depth=depth,
                descendant_count=descendants,
            )
            for kind, id, first_seq, last_seq, tokens, summary_kind, depth, descendants in found
        ]

    def as_state(self) -> list[Any]:
        return [[[step.summary_id, step.passed] for step in self.way], self.content_offset, self.parts_offset]


@dataclass(frozen=True)
class Expander:
    """Opens summaries."""

    policy: RetrievalPolicy
    tokens: TokenEstimator
    scope: Scope = EVERYTHING

    def expand(
        self, *, summary_id: str, depth: int, include_messages: bool, token_cap: int | None, cursor: str | None
    ) -> ExpandResult:
        cap = self._cap(token_cap)
        if depth != ALL_THE_WAY and depth < 1:
            raise Invalid(f"depth: {depth} is no number of layers; 1 opens one, {ALL_THE_WAY} all of them.")
        with snapshot():
            root = self.scope.summary(summary_id)
            walk = _begin(summary_id, depth, include_messages, cursor)
            items = tuple(self._items(walk, cap))
            more = walk.next() is not None
        return ExpandResult(
            summary_id=summary_id,
            conversation_id=root.conversation_id,
            depth=depth,
            include_messages=include_messages,
            items=items,
            tokens=sum(item.tokens for item in items),
            truncated=more,
            cursor=pack(_PURPOSE, [summary_id, depth, include_messages, walk.as_state()]) if more else None,
            unopened_messages=walk.unopened_messages,
        )

    def _cap(self, token_cap: int | None) -> int:
        most = self.policy.max_expand_tokens
        if token_cap is not None and token_cap < 1:
            raise Invalid(f"token_cap: {token_cap} is no number of tokens; 1 to {most} are.")
        return most if token_cap is None else min(token_cap, most)

    def _items(self, walk: Walk, room: int) -> Iterator[ExpandedItem]:
        """What fits on the page, and at least one item, or one slice of a message."""
        given = 0
        records: dict[int, MessageRecord] = {}
        while (ahead := walk.next()) is not None:
            of, level, outline = ahead
            if given and outline.tokens > room:
                return
            if outline.kind is ItemKind.SUMMARY:
                item, ends = self._summary(of, level, outline), True
            else:
                if int(outline.id) not in records:
                    records = _read(walk.messages_ahead(room=room))
                shown = self._message(records[int(outline.id)], of, level, walk, room=room, may_slice=not given)
                if shown is None:
                    return
                item, ends = shown
            yield item
            given += 1
            room -= item.tokens
            if not ends:
                return
            walk.pass_by()

    def _summary(self, of: str, level: int, outline: Outline) -> ExpandedItem:
        summary = self.scope.summary(outline.id)
        return ExpandedItem(
            id=outline.id,
            kind=ItemKind.SUMMARY,
            of=of,
            level=level,
            first_seq=outline.first_seq,
            last_seq=outline.last_seq,
            tokens=summary.token_count,
            content=summary.content,
            content_total=len(summary.content),
            created_at=summary.created_at,
            summary_kind=outline.summary_kind,
            depth=outline.depth,
            descendant_count=outline.descendant_count,
        )

    def _message(
        self, record: MessageRecord, of: str, level: int, walk: Walk, *, room: int, may_slice: bool
    ) -> tuple[ExpandedItem, bool] | None:
        """The message whole if it fits, else a slice of it if the page has nothing else; and whether it ends here."""
        shared: dict[str, Any] = {
            "id": record.id,
            "kind": ItemKind.MESSAGE,
            "of": of,
            "level": level,
            "first_seq": record.seq,
            "last_seq": record.seq,
            "created_at": record.created_at,
            "content_total": len(record.content),
            "role": record.role,
            "author": record.author,
        }
        begun = bool(walk.content_offset or walk.parts_offset)
        parts_json = parts_as_json(record.parts)
        if not begun:
            cost = record.token_count + self._cost_of_parts(parts_json, room - record.token_count)
            if cost <= room:
                return ExpandedItem(**shared, tokens=cost, content=record.content, parts=record.parts), True
            if not may_slice:
                return None
        return self._slice(shared, record.content, parts_json, walk, room)

    def _cost_of_parts(self, parts_json: str, room: int) -> int:
        if not parts_json:
            return 0
        # Far too long is seen without counting.
        return room + 1 if len(parts_json) > max(0, room) * 16 else self.tokens.count(parts_json)

    def _slice(
        self, shared: dict[str, Any], content: str, parts_json: str, walk: Walk, room: int
    ) -> tuple[ExpandedItem, bool]:
        count = self.tokens.count
        start, parts_start = walk.content_offset, walk.parts_offset
        piece = prefix_of(content, start, room=room, count_tokens=count) if start < len(content) else ""
        used = count(piece)
        walk.content_offset = start + len(piece)
        parts_piece = ""
        content_is_through = walk.content_offset >= len(content)
        if content_is_through and parts_start < len(parts_json) and (used < room or not piece):
            parts_piece = prefix_of(parts_json, parts_start, room=max(1, room - used), count_tokens=count)
            walk.parts_offset = parts_start + len(parts_piece)
        ends = content_is_through and walk.parts_offset >= len(parts_json)
        item = ExpandedItem(
            **shared,
            tokens=used + count(parts_piece),
            content=piece,
            content_offset=start,
            complete=ends,
            parts_json=parts_piece,
            parts_offset=parts_start,
            parts_total=len(parts_json),
        )
        return item, ends


def _read(message_ids: list[int]) -> dict[int, MessageRecord]:
    parts = parts_of(message_ids)
    messages = Message.objects.filter(pk__in=message_ids).readable()
    return {message.message_id: message.as_record(_said(parts[message.message_id])) for message in messages}


def _said(parts: list[PartRecord]) -> tuple[PartRecord, ...]:
    """The parts without the marks that compaction has left."""
    return tuple(part for part in parts if not (part.part_type is PartType.COMPACTION and part.is_synthetic))


def _begin(summary_id: str, depth: int, include_messages: bool, cursor: str | None) -> Walk:
    if cursor is None:
        return Walk(way=[Step(summary_id)], depth=depth, include_messages=include_messages)
    state = unpack(_PURPOSE, cursor)
    if state[:3] != [summary_id, depth, include_messages]:
        raise Invalid(
            "This cursor belongs to another expansion; ask with its summary_id, depth and include_messages.",
            code="bad_cursor",
        )
    way, content_offset, parts_offset = state[3]
    return Walk(
        way=[Step(step_id, passed) for step_id, passed in way],
        depth=depth,
        include_messages=include_messages,
        content_offset=content_offset,
        parts_offset=parts_offset,
    )

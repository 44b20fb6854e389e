"""Tell how summaries derive from messages and from each other."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.errors import NotFound
from conversations.scope import Scope
from conversations.sql import rows, snapshot
from retrieval.describing.summary_outlines import STATEMENTS, outline, records_of
from retrieval.ids import named, names_in
from retrieval.types import ItemKind, Lineage, LineageEdge, LineageNode, MessageSpan, SummaryOutline


@dataclass(frozen=True)
class ImpactLevel:
    """The summaries at one distance; `active` is how many of them a model sees."""

    distance: int
    count: int
    tokens: int
    active: int


@dataclass(frozen=True)
class Impact:
    """What derives from a message or a summary.

    `levels` count all of it, `items` are the nearest (`items_complete`). `active`: whether the message or summary
    itself is in the active context. A summary that was made again counts, with what it was superseded by; what was made
    instead of it derives from the same messages.
    """

    id: str
    kind: ItemKind
    conversation_id: int
    active: bool
    count: int
    tokens: int
    active_count: int
    levels: tuple[ImpactLevel, ...]
    items: tuple[SummaryOutline, ...]
    items_complete: bool


def impact(id: str, *, limit: int, scope: Scope) -> Impact:
    """See `RetrievalEngine.impact`: four queries."""
    found = named(id) or next(iter(names_in(id)), None)
    if found is None or found.kind not in (ItemKind.MESSAGE, ItemKind.SUMMARY):
        raise NotFound(f"{id[:80]!r} names no message (msg_...) and no summary (sum_...): nothing derives from it.")
    is_message = found.kind is ItemKind.MESSAGE
    with snapshot():
        source = scope.message(found.number) if is_message else scope.summary(found.id)
        values = {
            "message_id": found.number if is_message else None,
            "summary_id": None if is_message else found.id,
            "limit": limit,
        }
        levels = records_of(ImpactLevel, rows(STATEMENTS["levels"], values))
        items = tuple(outline(row) for row in rows(STATEMENTS["nearest"], values)) if levels else ()
        [[is_shown]] = rows(STATEMENTS["is_active"], values)
    count = sum(level.count for level in levels)
    return Impact(
        id=found.id,
        kind=found.kind,
        conversation_id=source.conversation_id,
        active=is_shown,
        count=count,
        tokens=sum(level.tokens for level in levels),
        active_count=sum(level.active for level in levels),
        levels=levels,
        items=items,
        items_complete=len(items) == count,
    )


def lineage(conversation_id: int, *, scope: Scope) -> Lineage:
    """See `RetrievalEngine.lineage`: five queries, whatever the size."""
    conversation = scope.conversation(conversation_id)
    whole = {"conversation_id": conversation_id, "from": 1, "upto": conversation.next_seq}
    return Lineage(
        conversation_id=conversation_id,
        message_count=conversation.counters.message_count,
        nodes=records_of(LineageNode, rows(STATEMENTS["nodes"], [conversation_id])),
        edges=records_of(LineageEdge, rows(STATEMENTS["edges"], [conversation_id])),
        raw_messages=records_of(MessageSpan, rows(STATEMENTS["raw_spans"], whole)),
        boundaries=tuple(each.as_record() for each in conversation.boundaries.order_by("last_seq", "boundary_id")),
    )

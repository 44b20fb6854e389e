"""Tell how summaries derive from messages and from each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from conversations.errors import NotFound
from conversations.scope import Scope
from conversations.sql import rows, snapshot
from conversations.types import Level, SummaryKind
from retrieval.describing.outlines import STATEMENTS, outline
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
    """What derives from a message or a summary: `levels` count all of it, `items` are the nearest (`items_complete`).

    `active`: whether the message or summary itself is in the active context. A summary that was made again counts,
    with what it was superseded by; what was made instead of it derives from the same messages.
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
    values: dict[str, int | str | None] = {"message_id": None, "summary_id": None, "limit": limit}
    with snapshot():
        if found.kind is ItemKind.MESSAGE:
            conversation_id = scope.message(found.number).conversation_id
            values["message_id"] = found.number
        else:
            conversation_id = scope.summary(found.id).conversation_id
            values["summary_id"] = found.id
        levels = tuple(ImpactLevel(*row) for row in rows(STATEMENTS["levels"], values))
        items = tuple(outline(row) for row in rows(STATEMENTS["nearest"], values)) if levels else ()
        [[is_shown]] = rows(STATEMENTS["is_active"], values)
    count = sum(level.count for level in levels)
    return Impact(
        id=found.id,
        kind=found.kind,
        conversation_id=conversation_id,
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
    edges = tuple(LineageEdge(*row) for row in rows(STATEMENTS["edges"], [conversation_id]))
    used = {edge.source_id for edge in edges}
    of_summaries = Counter(edge.summary_id for edge in edges)
    nodes = tuple(
        LineageNode(
            summary_id=row[0],
            kind=SummaryKind(row[1]),
            depth=row[2],
            level=Level(row[3]),
            first_seq=row[4],
            last_seq=row[5],
            token_count=row[6],
            source_tokens=row[7],
            direct_messages=row[8] - of_summaries[row[0]],
            descendant_count=row[9],
            created_at=row[10],
            active=row[0] not in used,
        )
        for row in rows(STATEMENTS["nodes"], [conversation_id])
    )
    return Lineage(
        conversation_id=conversation_id,
        message_count=conversation.counters.message_count,
        nodes=nodes,
        edges=edges,
        raw_messages=tuple(MessageSpan(*row) for row in rows(STATEMENTS["raw_spans"], whole)),
        boundaries=tuple(each.as_record() for each in conversation.boundaries.order_by("last_seq", "boundary_id")),
    )

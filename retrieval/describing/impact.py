"""Find all summaries that derive from a message or a summary."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.errors import Invalid, NotFound
from conversations.scope import Scope
from conversations.sql import load, rows, snapshot
from retrieval.describing.summary_outlines import outline
from retrieval.ids import named, names_in
from retrieval.types import ItemKind, SummaryOutline

MOST_LISTED = 1_000

_SQL = load("retrieval/impact.sql")


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
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_LISTED:
        raise Invalid(f"limit: {str(limit)[:80]!r} is not a whole number from 1 to {MOST_LISTED:,}.")
    inside = names_in(id) if isinstance(id, str) else ()
    found = named(id) or (inside[0] if inside else None) if isinstance(id, str) else None
    if found is None or found.kind not in (ItemKind.MESSAGE, ItemKind.SUMMARY):
        raise NotFound(
            f"{str(id)[:80]!r} names no message (msg_...) and no summary (sum_...): nothing derives from it."
        )
    values: dict[str, int | str | None] = {"message_id": None, "summary_id": None, "limit": limit}
    with snapshot():
        if found.kind is ItemKind.MESSAGE:
            conversation_id = scope.message(found.number).conversation_id
            values["message_id"] = found.number
        else:
            conversation_id = scope.summary(found.id).conversation_id
            values["summary_id"] = found.id
        levels = tuple(ImpactLevel(*row) for row in rows(_SQL["levels"], values))
        items = tuple(outline(row) for row in rows(_SQL["nearest"], values)) if levels else ()
        [[is_shown]] = rows(_SQL["is_active"], values)
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

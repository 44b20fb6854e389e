"""Read the lineage of a whole conversation, or of one item."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from typing import Any

from compaction.types import BoundaryRecord
from conversations.errors import NotFound
from conversations.models import Conversation
from conversations.scope import Scope
from conversations.sql import load, rows, snapshot, texts
from conversations.store.withheld import quarantined_files
from conversations.types import Level
from retrieval.describing.describe import session_summary
from retrieval.describing.summary_outlines import STATEMENTS, records_of
from retrieval.ids import named, names_in
from retrieval.reader import Reader
from retrieval.types import ItemKind, Lineage, LineageEdge, LineageNode, MessageSpan

# No lineage has so many levels. The limit ends the recursion if a damaged lineage has a cycle.
MOST_LEVELS = 1000
_SQL = load("retrieval/describing/impact.sql")


class Direction(StrEnum):
    """Upstream leads to items made from this one, downstream to its sources."""

    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"


class ImpactKind(StrEnum):
    """The kinds of item that have links in the lineage."""

    MESSAGE = "message"
    SUMMARY = "summary"
    FILE = "file"
    # A session, arc or epoch summary, which other conversations of its project can read.
    SESSION_SUMMARY = "session_summary"


class ImpactLabel(StrEnum):
    """How an item is affected if the given item is wrong; depends on the distance."""

    WILL_BREAK = "WILL BREAK"
    LIKELY_AFFECTED = "LIKELY AFFECTED"
    MAY_NEED_TESTING = "MAY NEED TESTING"


_LABELS = {1: ImpactLabel.WILL_BREAK, 2: ImpactLabel.LIKELY_AFFECTED}


@dataclass(frozen=True)
class ImpactItem:
    """An item that depends on the given one, or a source of it.

    Fields that do not apply are empty. `active`: it is in the active context, or is the current session summary.
    """

    id: str
    kind: ImpactKind
    distance: int
    conversation_id: int | None
    first_seq: int | None
    last_seq: int | None
    token_count: int | None
    active: bool
    depth: int | None
    superseded_by: str | None
    file_name: str | None
    level: Level | None
    # The confidence of a summary, which depends on its level.
    confidence: float | None


@dataclass(frozen=True)
class ImpactLevel:
    """The items at one distance. All are counted; the list may be incomplete."""

    distance: int
    count: int
    tokens: int
    active: int
    # Only upstream, because an item does not affect its sources.
    label: ImpactLabel | None = None
    items: tuple[ImpactItem, ...] = ()


@dataclass(frozen=True)
class Impact:
    """The items made from an item, or its sources, grouped by distance.

    `levels` counts all items and lists the nearest; `items_complete`: all are listed. `active`: the given item itself
    is in the active context. Superseded summaries count, too; each names its successor, made from the same messages.
    """

    id: str
    kind: ImpactKind
    conversation_id: int | None
    direction: Direction
    active: bool
    count: int
    tokens: int
    active_count: int
    levels: tuple[ImpactLevel, ...]
    items_complete: bool


def _source(id: str, scope: Scope) -> tuple[ImpactKind, str, int | None, int | None]:
    """Return the kind, id, number and conversation of an item; raises NotFound."""
    found = named(id) or next((each for each in names_in(id) if each.kind in _FINDERS), None)
    if found is None or found.kind not in _FINDERS:
        raise NotFound(
            f"{id[:80]!r} is not the id of a message (msg_...), summary (sum_...), session summary (ses_...) or file "
            "(file_...)."
        )
    row = _FINDERS[found.kind](scope, found)
    number = found.number if found.kind is ItemKind.MESSAGE else None
    return ImpactKind(found.kind.value), found.id, number, row.conversation_id


_FINDERS: dict[ItemKind, Any] = {
    ItemKind.MESSAGE: lambda scope, found: scope.message(found.number),
    ItemKind.SUMMARY: lambda scope, found: scope.summary(found.id),
    ItemKind.FILE: lambda scope, found: scope.file(found.id),
    ItemKind.SESSION_SUMMARY: session_summary,
}


def _rows(name: str, direction: Direction, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    statement = _SQL[name].replace("{things}", _SQL["things"]).replace("{step}", _SQL[direction.value])
    return rows(statement, values)


def _items(fetched: list[tuple[Any, ...]]) -> dict[int, tuple[ImpactItem, ...]]:
    """Build the items, grouped by distance; hide the names of quarantined files."""
    found = records_of(ImpactItem, fetched)
    held = quarantined_files(item.id for item in found if item.kind is ImpactKind.FILE)
    items = [replace(item, file_name=None) if item.id in held else item for item in found]
    return {distance: tuple(group) for distance, group in groupby(items, key=lambda item: item.distance)}


def boundaries_of(conversation: Conversation) -> tuple[BoundaryRecord, ...]:
    """The positions where the host has cut its context, in order."""
    return tuple(each.as_record() for each in conversation.boundaries.order_by("last_seq", "boundary_id"))


@dataclass(frozen=True)
class LineageReader(Reader):
    """Reads what was made from what."""

    def impact(
        self,
        *,
        id: str,
        direction: Direction | str = Direction.UPSTREAM,
        max_depth: int = MOST_LEVELS,
        min_confidence: float = 0.0,
        limit: int = 50,
    ) -> Impact:
        """List what depends on a message, a summary or a file, by distance.

        The result lists what may be wrong if this item is wrong: at distance 1 it WILL BREAK, at 2 it is LIKELY
        AFFECTED, and further on it MAY NEED TESTING. Upstream (the default) follows links to what derives from the
        item: from a file to the messages that name it, from messages to summaries, and on to the session, arc and epoch
        summaries of the project. Downstream follows links to the item's sources. The confidence of a link is that of
        the summary made by it: 0.7 at the normal level, 0.5 at aggressive, 0.3 at deterministic. Links below
        `min_confidence` are not followed. All items are counted; only the nearest `limit` are listed. Raises NotFound.
        """
        direction = Direction(direction)
        with snapshot():
            kind, name, number, conversation_id = _source(id, self.scope)
            values = {
                "kind": kind.value,
                "id": name,
                "number": number,
                "max_depth": max_depth,
                "levels": texts(level for level in Level if level.confidence >= min_confidence),
                "limit": limit,
            }
            itself, *levels = [ImpactLevel(*row) for row in _rows("levels", direction, values)]
            items = _items(_rows("nearest", direction, values)) if levels else {}
        upstream = direction is Direction.UPSTREAM
        levels = [
            replace(
                level,
                label=_LABELS.get(level.distance, ImpactLabel.MAY_NEED_TESTING) if upstream else None,
                items=items.get(level.distance, ()),
            )
            for level in levels
        ]
        count = sum(level.count for level in levels)
        return Impact(
            id=name,
            kind=kind,
            conversation_id=conversation_id,
            direction=direction,
            active=itself.active > 0,
            count=count,
            tokens=sum(level.tokens for level in levels),
            active_count=sum(level.active for level in levels),
            levels=tuple(levels),
            items_complete=sum(map(len, items.values())) == count,
        )

    def lineage(self, *, conversation_id: int) -> Lineage:
        """Read all summaries of a conversation and their sources. Raises NotFound."""
        conversation = self.scope.conversation(conversation_id)
        whole = {"conversation_id": conversation_id, "from": 1, "upto": conversation.next_seq}
        return Lineage(
            conversation_id=conversation_id,
            message_count=conversation.counters.message_count,
            nodes=records_of(LineageNode, rows(STATEMENTS["nodes"], [conversation_id])),
            edges=records_of(LineageEdge, rows(STATEMENTS["edges"], [conversation_id])),
            raw_messages=records_of(MessageSpan, rows(STATEMENTS["raw_spans"], whole)),
            boundaries=boundaries_of(conversation),
        )

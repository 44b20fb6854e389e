"""Read the sources of session, arc and epoch summaries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from compaction.history.models import SessionSummary
from compaction.rendering import ERASED, WITHHELD
from compaction.sources import read_slots, read_sources, withheld_items
from compaction.summarizing.summarizer import Source, SourceMessage, SourceSummary
from conversations import sql
from conversations.sql import snapshot

_WITHHELD_SESSIONS = sql.load("compaction/quarantines.sql")["withheld_sessions"]


@dataclass(frozen=True)
class HistorySource:
    """One source: a message, a summary of the conversation, or a session or arc."""

    id: str
    source: Source
    hash: str
    earliest_at: datetime
    latest_at: datetime
    first_seq: int | None = None
    last_seq: int | None = None
    message_id: int | None = None
    is_degraded: bool = False
    is_waiting: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether the source has a text to summarize."""
        return self.source.text not in (ERASED, WITHHELD)

    @property
    def is_erased(self) -> bool:
        return self.source.text == ERASED


def sources_of_conversation(conversation_id: int) -> list[HistorySource]:
    """Read the context items of a conversation, summaries and messages, in order.

    A quarantined item remains a source, but without its text, so that all messages stay reachable.
    """
    with snapshot():
        slots = read_slots(conversation_id)
        if not slots:
            return []
        read = read_sources(slots, withheld=withheld_items(conversation_id)).read
    return [
        HistorySource(
            id=each.source.source_id,
            source=each.source,
            hash=each.hash,
            earliest_at=each.earliest_at,
            latest_at=each.latest_at,
            first_seq=each.first_seq,
            last_seq=each.last_seq,
            message_id=each.id if isinstance(each.source, SourceMessage) else None,
            is_degraded=each.is_degraded,
            is_waiting=each.is_waiting,
        )
        for each in read
    ]


def withheld_sessions(workspace_id: int | None) -> frozenset[str]:
    """Return the ids of session, arc and epoch summaries that may not be shown.

    One of their sources was quarantined after they were made. They are withheld until they are regenerated. None
    searches all workspaces.
    """
    return frozenset(id for (id,) in sql.rows(_WITHHELD_SESSIONS, {"workspace_id": workspace_id}))


def sources_of_members(summary_ids: Sequence[str], *, withheld: Collection[str]) -> list[HistorySource]:
    """Read sessions or arcs as the sources of an arc or an epoch, in the given order.

    The summaries in `withheld` are returned without their text.
    """
    rows = SessionSummary.objects.select_related("conversation").readable().in_bulk(list(summary_ids))
    return [
        _of_member(rows[summary_id], place, is_withheld=summary_id in withheld)
        for place, summary_id in enumerate(summary_ids, start=1)
    ]


def _of_member(row: SessionSummary, place: int, *, is_withheld: bool) -> HistorySource:
    text = WITHHELD if is_withheld else row.content
    title = "" if row.conversation is None or row.erased_by_id is not None else f" {row.conversation}"
    return HistorySource(
        id=row.summary_id,
        source=SourceSummary(
            source_id=row.summary_id,
            depth=row.depth,
            # The position in the list: ranges of messages have no order across conversations.
            first_seq=place,
            last_seq=place,
            text=ERASED if row.erased_by_id is not None else text,
            earliest_at=row.earliest_at,
            latest_at=row.latest_at,
            about=f"{row.kind}{title}",
        ),
        hash=bytes(row.summary_hash).hex(),
        earliest_at=row.earliest_at,
        latest_at=row.latest_at,
        is_degraded=row.is_degraded,
        is_waiting=row.quality.get("waits") is True,
    )

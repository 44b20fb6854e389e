"""Read the sources of session, arc and epoch summaries."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from compaction.history.models import SessionSummary
from compaction.rendering import ERASED, WITHHELD
from compaction.sources import SourceRecord, read_slots, read_sources, withheld_items
from compaction.summarizing.summarizer import SourceSummary
from conversations import sql
from conversations.sql import snapshot

_WITHHELD_SESSIONS = sql.load("compaction/quarantines.sql")["withheld_sessions"]


def sources_of_conversation(conversation_id: int) -> list[SourceRecord]:
    """Read the context items of a conversation, summaries and messages, in order.

    A quarantined item remains a source, but without its text, so that all messages stay reachable.
    """
    with snapshot():
        slots = read_slots(conversation_id)
        return read_sources(slots, withheld=withheld_items(conversation_id)).records if slots else []


def withheld_sessions(workspace_id: int | None) -> frozenset[str]:
    """Return the ids of session, arc and epoch summaries that may not be shown.

    One of their sources was quarantined after they were made. They are withheld until they are regenerated. None
    searches all workspaces.
    """
    return frozenset(id for (id,) in sql.rows(_WITHHELD_SESSIONS, {"workspace_id": workspace_id}))


def sources_of_members(summary_ids: Sequence[str], *, withheld: Collection[str]) -> list[SourceRecord]:
    """Read sessions or arcs as the sources of an arc or an epoch, in the given order.

    The summaries in `withheld` are returned without their text.
    """
    rows = SessionSummary.objects.select_related("conversation").readable().in_bulk(list(summary_ids))
    return [
        _of_member(rows[summary_id], place, is_withheld=summary_id in withheld)
        for place, summary_id in enumerate(summary_ids, start=1)
    ]


def _of_member(row: SessionSummary, place: int, *, is_withheld: bool) -> SourceRecord:
    text = WITHHELD if is_withheld else row.content
    title = "" if row.conversation is None or row.erased_by_id is not None else f" {row.conversation}"
    return SourceRecord(
        message_id=None,
        source=SourceSummary(
            source_id=row.summary_id,
            depth=row.depth,
            first_seq=place,
            last_seq=place,
            text=ERASED if row.erased_by_id is not None else text,
            earliest_at=row.earliest_at,
            latest_at=row.latest_at,
            about=f"{row.kind}{title}",
        ),
        hash=bytes(row.summary_hash).hex(),
        # The position in the list: ranges of messages have no order across conversations.
        first_seq=place,
        last_seq=place,
        earliest_at=row.earliest_at,
        latest_at=row.latest_at,
        is_degraded=row.is_degraded,
        is_waiting=row.quality.get("waits") is True,
    )

"""Decide which session, arc and epoch summaries must be regenerated."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from compaction.history.models import SessionSummary
from compaction.history.types import HistoryKind, HistoryReason
from compaction.sources import SourceRecord
from conversations import sql
from conversations.models import Conversation

_STATEMENTS = sql.load("compaction/history.sql")


def current_of(conversation_id: int) -> SessionSummary | None:
    """Return the current session summary of a conversation, or None."""
    return SessionSummary.objects.readable().current().filter(conversation_id=conversation_id).first()


def current_in_line(summary_id: str) -> SessionSummary:
    """Return the newest summary that supersedes this one, or itself if none does."""
    # A damaged chain may have no last summary, or several.
    current = next((each for (each,) in sql.rows(_STATEMENTS["current_in_line"], [summary_id])), summary_id)
    return SessionSummary.objects.select_related("superseded_by").readable().get(pk=current)


def current_members(summary_id: str) -> list[str]:
    """Return the current summaries of the members of an arc or epoch, in order."""
    return [each for (each,) in sql.rows(_STATEMENTS["current_members"], [summary_id])]


def damaged(summary_ids: Collection[str]) -> frozenset[str]:
    """Return the summaries whose hash, links or range do not match their sources."""
    return frozenset(each for (each,) in sql.rows(_STATEMENTS["damaged_history"], {"ids": list(summary_ids)}))


def is_damaged_or_outdated(current: SessionSummary, reason: HistoryReason) -> bool:
    """Whether a session summary is damaged, or quarantines of its sources changed.

    Damage counts only for the reason `manual`: a person's request, or a step of a repair plan.
    """
    if reason is HistoryReason.MANUAL and damaged([current.pk]):
        return True
    values = {"conversation_id": current.conversation_id, "limit": 1}
    return reason.sees_quarantines and bool(sql.rows(_STATEMENTS["quarantines_changed"], values))


def is_due(current: SessionSummary, conversation: Conversation, reason: HistoryReason) -> bool:
    """Whether a session summary is outdated, erased, or degraded and `reason` a redo."""
    return (
        (current.last_seq or 0) != conversation.head_seq
        or current.project_id != conversation.project_id
        or current.erased_by_id is not None
        or (current.is_degraded and reason.is_redo)
    )


def only_sources_wait(current: SessionSummary, sources: Sequence[SourceRecord]) -> bool:
    """Whether only the summary's sources lacked a model, and they are unchanged."""
    if current.quality.get("lack") is not None or current.erased_by_id is not None:
        return False
    linked = current.memory_links.order_by("ordinal").values_list("memory_summary_id", "message_id")
    return [summary_id or f"msg_{message_id}" for summary_id, message_id in linked] == [each.id for each in sources]


def gains_nothing(made: SessionSummary, current: SessionSummary) -> bool:
    """Whether `made`, like the degraded `current`, lacks a model and covers no more."""
    covers_more = (made.last_seq, made.project_id) != (current.last_seq, current.project_id)
    if covers_more or current.erased_by_id is not None or not current.is_degraded:
        return False
    # If this differs, the new row must record it: after a rejected text, a summary no longer waits.
    still_waits = made.quality.get("waits") == current.quality.get("waits")
    return made.quality.get("lack") is not None and still_waits


def to_renew(project_id: int, kind: HistoryKind, reason: HistoryReason) -> list[str]:
    """Return the current arcs or epochs of a project to regenerate, oldest first.

    These have a renewed member, or are erased and have a member that is not. For the reason `redo`, those that wait for
    a model are included as well; for `manual`, all that were made without a model, and the damaged ones.
    """
    values = {
        "project_id": project_id,
        "depth": kind.depth,
        "is_redo": reason.is_redo,
        "only_waiting": reason is not HistoryReason.MANUAL,
    }
    found = [summary_id for (summary_id,) in sql.rows(_STATEMENTS["stale_of_project"], values)]
    if reason is HistoryReason.MANUAL:
        present = SessionSummary.objects.current().filter(project_id=project_id, depth=kind.depth)
        found += sorted(damaged(present.filter(erased_by=None).values_list("pk", flat=True)))
    return list(dict.fromkeys(found))


def has_members(summary: SessionSummary, members: Sequence[str]) -> bool:
    """Whether an arc or an epoch was made from exactly these members, in this order."""
    return list(summary.child_links.order_by("ordinal").values_list("child_id", flat=True)) == list(members)


def are_current(sources: Sequence[SourceRecord]) -> bool:
    """Whether all sources are still current, and none was erased since it was read."""
    now = SessionSummary.objects.current().filter(pk__in=[each.id for each in sources])
    erased_by = dict(now.values_list("pk", "erased_by_id"))
    return all(each.id in erased_by and each.is_erased == (erased_by[each.id] is not None) for each in sources)

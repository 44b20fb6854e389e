"""Describe a session, arc or epoch summary: its text and its lineage links.

A session summary covers one conversation, an arc several sessions, an epoch several arcs.
"""

from __future__ import annotations

from typing import Any

from compaction.history.history_sources import withheld_sessions
from compaction.history.models import SessionSummary
from compaction.history.types import HistoryKind
from conversations.scope import Scope
from conversations.sql import load, rows
from conversations.types import Level
from retrieval.ids import Named
from retrieval.types import Description, ItemKind, MessageSpan

_SQL = load("retrieval/describing/sessions.sql")
_WITHHELD = "This summary was made from content that is quarantined now; its text is withheld until it is regenerated."
_OF_ROW = (
    "conversation_id", "created_at", "token_count", "first_seq", "last_seq", "earliest_at", "latest_at", "depth",
    "is_degraded", "model", "quality",
)  # fmt: skip


def session_summary(scope: Scope, found: Named) -> SessionSummary:
    """The row of a session, arc or epoch summary; raises NotFound."""
    return scope.find(SessionSummary.objects.readable(), "session summary", found.id, summary_id=found.id)


def described_session(found: Named, scope: Scope) -> Description:
    """Describe a session, arc or epoch summary, with its sources and derived items."""
    summary = session_summary(scope, found)
    [relations] = rows(_SQL["relations"], {"summary_id": summary.pk})
    project, superseded_by, sources, spans, derived, messages, tokens = relations
    hidden = withheld_sessions(summary.workspace_id)
    is_erased = summary.erased_by_id is not None
    given: dict[str, Any] = {name: getattr(summary, name) for name in _OF_ROW}
    level = Level(summary.level)
    return Description(
        id=summary.pk,
        kind=ItemKind.SESSION_SUMMARY,
        **given,
        history_kind=HistoryKind(summary.kind),
        project=project,
        active=superseded_by is None,
        level=level,
        confidence=level.confidence,
        confidence_reason=level.confidence_reason,
        opening_tokens=tokens,
        message_count=messages,
        sources=tuple(sources),
        source_messages=tuple(MessageSpan(*span) for span in spans),
        derived=tuple(derived),
        content=None if is_erased or summary.pk in hidden else summary.content,
        supersedes=summary.supersedes_id,
        superseded_by=superseded_by,
        erased=is_erased,
        quarantined=_WITHHELD if summary.pk in hidden else None,
    )

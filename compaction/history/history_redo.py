"""Regenerate session, arc and epoch summaries on a person's request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compaction.history import history_jobs
from compaction.history.history_renewal import current_in_line, current_members, damaged
from compaction.history.history_sources import withheld_sessions
from compaction.history.models import SessionSummary
from compaction.history.session_history import SessionHistory
from compaction.history.types import HistoryJobRecord, HistoryKind, HistoryReason, RedoneHistory
from conversations.scope import EVERYTHING, Scope


@dataclass(frozen=True)
class HistoryRedo:
    """Regenerates degraded and damaged summaries; new rows supersede the old ones."""

    history: SessionHistory

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> HistoryRedo:
        return cls(SessionHistory.from_settings(scope))

    def redo_session(self, *, summary_id: str) -> RedoneHistory:
        """Regenerate a degraded or damaged session, arc or epoch summary.

        Degraded or damaged summaries below it are regenerated first. New summaries supersede the old ones, which are
        kept. Arcs and epochs above follow in the background. A summary that is neither degraded nor damaged stays as it
        is. If the given summary is superseded, its current successor is used. Raises NotFound; ConversationBusy,
        retryable, while one of these summaries is being made.
        """
        before = self._current(summary_id)
        below = sum(self._redo(each) for each in self._to_redo_below(before))
        self._redo(before)
        now = current_in_line(before.pk)
        is_new = now.pk != before.pk
        if is_new and now.project_id is not None:
            history_jobs.request(workspace_id=now.workspace_id, reason=HistoryReason.PROJECT, project_id=now.project_id)
        return RedoneHistory(summary_id, created=is_new, below=below, summary=now.as_record())

    def request_redo_session(self, *, summary_id: str) -> HistoryJobRecord:
        """Queue the redo of a summary and of those below it; return its job."""
        before = self._current(summary_id)
        jobs = [request_redo(each) for each in (*self._to_redo_below(before), before)]
        return self.history.get_job(job_id=jobs[-1])

    def _current(self, summary_id: str) -> SessionSummary:
        found = self.history.store.scope.find(
            SessionSummary.objects.all(), "session summary", summary_id, summary_id=summary_id
        )
        return current_in_line(found.pk)

    def _to_redo_below(self, summary: SessionSummary) -> Iterator[SessionSummary]:
        """Yield the summaries below this one that must be regenerated, sources first.

        These are degraded, damaged or withheld, or have such a summary below them.
        """
        if summary.kind == HistoryKind.SESSION:
            return
        members = list(SessionSummary.objects.filter(pk__in=current_members(summary.pk)).order_by("earliest_at", "pk"))
        wrong = damaged([each.pk for each in members]) | withheld_sessions(summary.workspace_id)
        for member in members:
            below = list(self._to_redo_below(member))
            yield from below
            if below or member.is_degraded or member.pk in wrong:
                yield member

    def _redo(self, summary: SessionSummary) -> bool:
        """Regenerate the summary if that gains anything; return whether it did."""
        if summary.conversation_id is None:
            self.history.renew(current_in_line(summary.pk).pk)
        else:
            self.history.make_session(conversation_id=summary.conversation_id, reason=HistoryReason.MANUAL)
        return current_in_line(summary.pk).pk != summary.pk


def request_redo(summary: SessionSummary) -> int:
    """Request a job that regenerates this summary; return its id."""
    is_session = summary.conversation_id is not None
    return history_jobs.request(
        workspace_id=summary.workspace_id,
        reason=HistoryReason.MANUAL,
        conversation_id=summary.conversation_id,
        project_id=None if is_session else summary.project_id,
    )

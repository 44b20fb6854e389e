"""The history worker: does one job at a time, and sweeps for summaries to make."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from compaction.history import history_jobs
from compaction.history.models import HistoryJob
from compaction.history.session_history import SessionHistory
from compaction.history.types import HistoryReason
from compaction.llm.configuration import chain_of
from compaction.llm.guards import callable_models
from compaction.redo import LONGEST_PAUSE, MOST_ATTEMPTS, PAUSE
from conversations import sql
from conversations.errors import Conflict, NotFound
from conversations.work.queue import BUSY_DELAY_SECONDS, Lease

_STATEMENTS = sql.load("compaction/history.sql")


@dataclass(frozen=True)
class HistoryWorker:
    history: SessionHistory
    # The clock of the models' circuit breakers.
    now: Callable[[], datetime] = timezone.now

    @classmethod
    def from_settings(cls) -> HistoryWorker:
        return cls(history=SessionHistory.from_settings())

    def work(self, *, job_id: int | None = None) -> bool:
        """Do the given job, or the next due one; return False if none can be claimed."""
        lease = history_jobs.QUEUE.claim(lease_seconds=self.history.policy.job_lease_seconds, row_id=job_id)
        if lease is None:
            return False
        with lease.attempt():
            self._carry_out(lease)
        return True

    def _carry_out(self, lease: Lease[HistoryJob]) -> None:
        try:
            with lease.heartbeat():
                is_done = self._make(lease)
        except Conflict as busy:
            if not busy.retryable:
                raise
            # Nothing was written, so this is not counted as an attempt.
            lease.release(attempts=lease.attempts - 1, error=busy.code, delay_seconds=BUSY_DELAY_SECONDS)
        except NotFound:
            lease.finish()
        else:
            if is_done:
                lease.finish()
            else:
                lease.release()

    def _make(self, lease: Lease[HistoryJob]) -> bool:
        job, reason = lease.row, HistoryReason(lease.row.reason)
        if job.project_id is not None:
            return self.history.make_of_project(project_id=job.project_id, reason=reason, lease=lease)
        assert job.conversation_id is not None, "a job is about a conversation or a project"
        self.history.make_session(conversation_id=job.conversation_id, reason=reason, lease=lease)
        return True

    def sweep(self) -> None:
        """Wake workers for due jobs, and request jobs for summaries to be made.

        Jobs are requested for conversations without new messages for a while that are not summarized yet, for erased
        sessions, for sessions whose sources were quarantined or released, for projects with enough sessions or arcs,
        and for summaries that wait for a model which can be called again.
        """
        history_jobs.QUEUE.wake_due()
        policy = self.history.policy
        bounds = {"limit": policy.most_requested}
        if policy.session_quiet_minutes:
            quiet = {"minutes": policy.session_quiet_minutes, **bounds}
            self._request("conversation_id", HistoryReason.QUIET, sql.rows(_STATEMENTS["quiet_conversations"], quiet))
        self._request("conversation_id", HistoryReason.CHANGED, sql.rows(_STATEMENTS["erased_sessions"], bounds))
        everywhere = {"conversation_id": None, **bounds}
        changed = sql.rows(_STATEMENTS["quarantines_changed"], everywhere)
        self._request("conversation_id", HistoryReason.CHANGED, changed)
        enough = {"sessions_per_arc": policy.sessions_per_arc, "arcs_per_epoch": policy.arcs_per_epoch, **bounds}
        self._request("project_id", HistoryReason.PROJECT, sql.rows(_STATEMENTS["projects_with_work"], enough))
        self._request_redos()

    def _request(self, about: str, reason: HistoryReason, found: Iterable[tuple[Any, ...]]) -> None:
        for key, workspace_id in found:
            about_it: dict[str, Any] = {about: key}
            history_jobs.request(workspace_id=workspace_id, reason=reason, **about_it)

    def _request_redos(self) -> None:
        """Request jobs for summaries that wait for a model, if one can be called."""
        models = callable_models(chain_of(self.history.compaction.summarizer), now=self.now)
        if not any(models.values()):
            return
        due = {
            "most_attempts": MOST_ATTEMPTS,
            "pause": PAUSE,
            "longest_pause": LONGEST_PAUSE,
            "now": self.now(),
            "limit": self.history.policy.most_requested,
        }
        for workspace_id, conversation_id, project_id in sql.rows(_STATEMENTS["history_waiting_for_a_model"], due):
            history_jobs.request(
                workspace_id=workspace_id,
                reason=HistoryReason.REDO,
                conversation_id=conversation_id,
                project_id=project_id,
            )

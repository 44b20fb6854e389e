"""What was begun and not ended is closed."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.utils import timezone

from compaction.models import CompactionJob, CompactionRun
from compaction.types import JobState, Outcome
from conversations.audit import AuditLog
from conversations.sql import rows
from integrity.repairs.operations.operation import CannotRepair, Operation, Target, Values
from integrity.repairs.repair_planning import Step

_GRANT = "SELECT revoked_at::text FROM grants WHERE grant_id = %s"
_REVOKE = "UPDATE grants SET revoked_at = %s::timestamptz WHERE grant_id = %s"


class CloseJob(Operation):
    """Ends a job that its worker has left. The sweep asks for another one where there is still something to do."""

    step = Step.CLOSE_JOB

    def state(self, target: Target) -> Values:
        job = self._job(target)
        return {
            "state": job.state,
            "fence": job.fence,
            "last_error": job.last_error,
            "finished_at": job.finished_at and job.finished_at.isoformat(),
        }

    def outlook(self, target: Target) -> Values:
        return {**self.state(target), "state": JobState.FAILED.value, "last_error": "orphaned"}

    def apply(self, target: Target, log: AuditLog) -> Values:
        before = self.state(target)
        # Whoever held it holds it no longer, should it ever come back.
        CompactionJob.objects.filter(pk=target.number).update(
            state=JobState.FAILED, fence=before["fence"] + 1, last_error="orphaned", finished_at=timezone.now()
        )
        return before

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        CompactionJob.objects.filter(pk=target.number).update(**undo)

    def _job(self, target: Target) -> CompactionJob:
        return CompactionJob.objects.get(pk=target.number)


class CloseRun(Operation):
    """Ends the record of a run that nobody is at work on; what it wrote stays."""

    step = Step.CLOSE_RUN

    def state(self, target: Target) -> Values:
        run = CompactionRun.objects.get(pk=target.id)
        return {"outcome": run.outcome, "finished_at": run.finished_at and run.finished_at.isoformat()}

    def outlook(self, target: Target) -> Values:
        return {**self.state(target), "outcome": Outcome.ABANDONED.value}

    def apply(self, target: Target, log: AuditLog) -> Values:
        before = self.state(target)
        CompactionRun.objects.filter(pk=target.id).update(outcome=Outcome.ABANDONED, finished_at=timezone.now())
        return before

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        CompactionRun.objects.filter(pk=target.id).update(**undo)


class ExpireGrant(Operation):
    """Takes leave to read back that should have ended."""

    step = Step.EXPIRE_GRANT

    def state(self, target: Target) -> Values:
        found = rows(_GRANT, [target.id])
        if not found:
            raise CannotRepair(f"There is no {target.id} any more.")
        return {"revoked_at": found[0][0]}

    def outlook(self, target: Target) -> Values:
        return {"is_revoked": True}

    def apply(self, target: Target, log: AuditLog) -> Values:
        before = self.state(target)
        self._set(target, timezone.now().isoformat())
        return before

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        self._set(target, undo["revoked_at"])

    def _set(self, target: Target, revoked_at: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_REVOKE, [revoked_at, target.id])

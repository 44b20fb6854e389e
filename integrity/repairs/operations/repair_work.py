"""Close abandoned jobs, runs and grants, and correct figures of runs."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.utils import timezone

from compaction.models import CompactionJob, CompactionRun
from compaction.rendering import context_cost_of
from compaction.types import JobState, Outcome
from conversations.audit import AuditLog
from conversations.content.tokens import TokenEstimator
from conversations.models import Summary
from conversations.sql import rows
from integrity.repairs.operations.operation import CannotRepair, Operation, Target, Values
from integrity.repairs.repair_planning import Step

_GRANT = "SELECT revoked_at::text FROM grants WHERE grant_id = %s"
_REVOKE = "UPDATE grants SET revoked_at = %s::timestamptz WHERE grant_id = %s"


class CloseJob(Operation):
    """Close a job that its worker abandoned.

    The sweep requests another one if there is still work.
    """

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
        # A new fence: the worker that held it can no longer write.
        CompactionJob.objects.filter(pk=target.number).update(
            state=JobState.FAILED, fence=before["fence"] + 1, last_error="orphaned", finished_at=timezone.now()
        )
        return before

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        CompactionJob.objects.filter(pk=target.number).update(**undo)

    def _job(self, target: Target) -> CompactionJob:
        return CompactionJob.objects.get(pk=target.number)


class CloseRun(Operation):
    """Close the record of a run that no worker is running; what it wrote stays."""

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
    """Revoke a grant that should have ended."""

    step = Step.EXPIRE_GRANT

    def state(self, target: Target) -> Values:
        found = rows(_GRANT, [target.id])
        if not found:
            raise CannotRepair(f"{target.id} does not exist.")
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


class MendRun(Operation):
    """Correct a run's token counts, and keep the recorded ones in its details.

    The saving is correct, because it was added up summary by summary, and stays. The context after the run cost at
    least as much as the run's own summaries in it; the cost of the other items at that time is not recorded.
    """

    step = Step.MEND_RUN

    def state(self, target: Target) -> Values:
        run = self._run(target)
        return {"tokens_before": run.tokens_before, "tokens_after": run.tokens_after, "details": run.details}

    def outlook(self, target: Target) -> Values:
        run = self._run(target)
        before, after = run.tokens_before, run.tokens_after
        mended = mended_figures(before, after, at_least=_cost_of_summaries(run), may_grow=run.redone_summaries > 0)
        if mended == (before, after):
            raise CannotRepair(f"The figures of {target.id} add up.")
        recorded = {"tokens_before": before, "tokens_after": after}
        return {
            "tokens_before": mended[0],
            "tokens_after": mended[1],
            "details": {**run.details, "recorded_before_repair": recorded},
        }

    def is_reversible(self, target: Target) -> bool:
        """The database refuses the recorded figures.

        The step and the run's details keep them.
        """
        return False

    def apply(self, target: Target, log: AuditLog) -> Values:
        before = self.state(target)
        CompactionRun.objects.filter(pk=target.id).update(**self.outlook(target))
        return before

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        raise CannotRepair(
            f"The database refuses the figures that {target.id} had, so they cannot be restored. Its details keep them."
        )

    def _run(self, target: Target) -> CompactionRun:
        return CompactionRun.objects.get(pk=target.id)


def mended_figures(before: int, after: int, *, at_least: int, may_grow: bool) -> tuple[int, int]:
    """Return tokens before and after with the same saving, and `at_least` after."""
    saved = before - after if may_grow else max(0, before - after)
    mended = max(after, at_least, -saved, 0)
    return mended + saved, mended


def _cost_of_summaries(run: CompactionRun) -> int:
    """Return the cost of the run's summaries that were in the context at its end."""
    made: dict[str, Any] = {
        summary.summary_id: summary.as_record()
        for summary in Summary.objects.filter(conversation_id=run.conversation_id, run_id=run.run_id).readable()
    }
    condensed = Summary.objects.filter(derived_links__summary_id__in=made).values_list("pk", flat=True)
    superseded = {summary.supersedes_id for summary in made.values()}
    cost_of = context_cost_of(TokenEstimator.from_settings())
    return sum(cost_of(made[each]) for each in made.keys() - {*condensed} - superseded)

"""Repair operations that close abandoned work and correct token counts of runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.apps import apps
from django.utils import timezone

from compaction.models import CompactionRun
from compaction.rendering import context_cost_of
from compaction.types import JobState, Outcome
from conversations.audit import AuditLog
from conversations.content.tokens import TokenEstimator
from conversations.models import Summary
from integrity.models import RepairStep
from integrity.repairs.repair_operation import CannotRepair, Operation, Values


class UpdateRow(Operation):
    """Update columns of one row; undoing restores the earlier values."""

    # A name instead of the class, because this package must not import `retrieval`, which has the grants.
    model: ClassVar[str]
    # The columns that the step depends on, the values that it writes, and the column that gets the current time.
    columns: ClassVar[tuple[str, ...]]
    values: ClassVar[Values] = {}
    written_at: ClassVar[str]
    # Whether the target is a number with a prefix, such as `job_12`, and not the primary key itself.
    is_numbered: ClassVar[bool] = False

    def state(self, step: RepairStep) -> Values:
        row = self.row(step)
        values = {name: getattr(row, name) for name in self.columns}
        return {name: each.isoformat() if isinstance(each, datetime) else each for name, each in values.items()}

    def outlook(self, step: RepairStep) -> Values:
        return {**self.state(step), **self.values}

    def apply(self, step: RepairStep, log: AuditLog) -> Values:
        before = self.state(step)
        self._rows(step).update(**self.values_to_write(step))
        return before

    def undo(self, step: RepairStep, undo: Values, log: AuditLog) -> None:
        self._rows(step).update(**undo)

    def values_to_write(self, step: RepairStep) -> Values:
        """Return the values that the step writes."""
        return {**self.values, self.written_at: timezone.now()}

    def row(self, step: RepairStep) -> Any:
        """Return the row of the target; raises CannotRepair if there is none."""
        row = self._rows(step).first()
        if row is None:
            raise CannotRepair(f"{step.target} does not exist.")
        return row

    def _rows(self, step: RepairStep) -> Any:
        model: Any = apps.get_model(self.model)
        return model.objects.filter(pk=step.number if self.is_numbered else step.target)


class CloseJob(UpdateRow):
    """Close a job that its worker abandoned.

    If there is still work, the sweep requests another job.
    """

    model = "compaction.CompactionJob"
    is_numbered = True
    columns = ("state", "fence", "last_error", "finished_at")
    values: ClassVar = {"state": JobState.FAILED.value, "last_error": "orphaned"}
    written_at = "finished_at"

    def values_to_write(self, step: RepairStep) -> Values:
        # With a new fence, the worker that still has the old one can no longer write.
        return {**super().values_to_write(step), "fence": self.row(step).fence + 1}


class CloseHistoryJob(CloseJob):
    """Close an abandoned job that makes session, arc or epoch summaries."""

    model = "compaction.HistoryJob"


class CloseRun(UpdateRow):
    """Close the record of a compaction run without a worker; its summaries stay."""

    model = "compaction.CompactionRun"
    columns = ("outcome", "finished_at")
    values: ClassVar = {"outcome": Outcome.ABANDONED.value}
    written_at = "finished_at"


class ExpireGrant(UpdateRow):
    """Revoke a grant that is still open long after it should have ended."""

    model = "retrieval.Grant"
    columns = ("revoked_at",)
    written_at = "revoked_at"

    def outlook(self, step: RepairStep) -> Values:
        return {"is_revoked": True}


class MendRun(UpdateRow):
    """Correct a compaction run's token counts; keep the recorded ones in its details.

    Their difference is the saving, which is a sum over the run's summaries: it is correct and stays. `tokens_after`
    becomes at least the tokens of those summaries at the end of the run; those of other items are not recorded.
    """

    model = "compaction.CompactionRun"
    columns = ("tokens_before", "tokens_after", "details")

    def outlook(self, step: RepairStep) -> Values:
        run = self.row(step)
        recorded = {"tokens_before": run.tokens_before, "tokens_after": run.tokens_after}
        before, after = mended_figures(
            *recorded.values(), at_least=_cost_of_summaries(run), may_grow=run.redone_summaries > 0
        )
        mended = {"tokens_before": before, "tokens_after": after}
        if mended == recorded:
            raise CannotRepair(f"The figures of {step.target} add up.")
        return {**mended, "details": {**run.details, "recorded_before_repair": recorded}}

    def is_reversible(self, step: RepairStep) -> bool:
        """Never: the database refuses the recorded counts. The details keep them."""
        return False

    def values_to_write(self, step: RepairStep) -> Values:
        return self.outlook(step)

    def undo(self, step: RepairStep, undo: Values, log: AuditLog) -> None:
        raise CannotRepair(
            f"The database refuses the figures that {step.target} had, so they cannot be restored. "
            "Its details keep them."
        )


def mended_figures(before: int, after: int, *, at_least: int, may_grow: bool) -> tuple[int, int]:
    """Return tokens before and after: the same saving, and at least `at_least` after."""
    saved = before - after if may_grow else max(0, before - after)
    mended = max(after, at_least, -saved, 0)
    return mended + saved, mended


def _cost_of_summaries(run: CompactionRun) -> int:
    """Return the tokens of the run's summaries that were in the context at its end."""
    made: dict[str, Any] = {
        summary.summary_id: summary.as_record()
        for summary in Summary.objects.filter(conversation_id=run.conversation_id, run_id=run.run_id).readable()
    }
    condensed = Summary.objects.filter(derived_links__summary_id__in=made).values_list("pk", flat=True)
    superseded = {summary.supersedes_id for summary in made.values()}
    cost_of = context_cost_of(TokenEstimator.from_settings())
    return sum(cost_of(made[each]) for each in made.keys() - {*condensed} - superseded)

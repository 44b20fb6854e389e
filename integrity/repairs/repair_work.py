"""Close abandoned jobs, runs and grants, and correct figures of runs."""

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
from integrity.repairs.repair_operation import CannotRepair, Operation, Target, Values
from integrity.repairs.repair_planning import Step


class UpdateRow(Operation):
    """Update columns of one row; undoing writes the values before."""

    model: ClassVar[str]
    # The columns that the step depends on, and the values that it writes, besides the time.
    columns: ClassVar[tuple[str, ...]]
    values: ClassVar[Values]
    written_at: ClassVar[str]

    def state(self, target: Target) -> Values:
        row = self.row(target)
        values = {name: getattr(row, name) for name in self.columns}
        return {name: each.isoformat() if isinstance(each, datetime) else each for name, each in values.items()}

    def outlook(self, target: Target) -> Values:
        return {**self.state(target), **self.values}

    def apply(self, target: Target, log: AuditLog) -> Values:
        before = self.state(target)
        self.update(target, {**self.values, self.written_at: timezone.now()})
        return before

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        self.update(target, undo)

    def row(self, target: Target) -> Any:
        """Return the row of the target; CannotRepair if there is none."""
        model: Any = apps.get_model(self.model)
        row = model.objects.filter(pk=target.number if self.model.endswith("Job") else target.id).first()
        if row is None:
            raise CannotRepair(f"{target.id} does not exist.")
        return row

    def update(self, target: Target, values: Values) -> None:
        row = self.row(target)
        for name, value in values.items():
            setattr(row, name, value)
        row.save(update_fields=[*values])


class CloseJob(UpdateRow):
    """Close a job that its worker abandoned.

    The sweep requests another one if there is still work.
    """

    step = Step.CLOSE_JOB
    model = "compaction.CompactionJob"
    columns = ("state", "fence", "last_error", "finished_at")
    values: ClassVar = {"state": JobState.FAILED.value, "last_error": "orphaned"}
    written_at = "finished_at"

    def update(self, target: Target, values: Values) -> None:
        # A new fence: the worker that held it can no longer write.
        super().update(target, {"fence": self.row(target).fence + 1, **values})


class CloseRun(UpdateRow):
    """Close the record of a run that no worker is running; what it wrote stays."""

    step = Step.CLOSE_RUN
    model = "compaction.CompactionRun"
    columns = ("outcome", "finished_at")
    values: ClassVar = {"outcome": Outcome.ABANDONED.value}
    written_at = "finished_at"


class ExpireGrant(UpdateRow):
    """Revoke a grant that should have ended."""

    step = Step.EXPIRE_GRANT
    # Named, not imported: the rooms beside this one are not imported here.
    model = "retrieval.Grant"
    columns = ("revoked_at",)
    values: ClassVar = {}
    written_at = "revoked_at"

    def outlook(self, target: Target) -> Values:
        return {"is_revoked": True}


class MendRun(Operation):
    """Correct a run's token counts, and keep the recorded ones in its details.

    The saving is correct, because it was added up summary by summary, and stays. The context after the run cost at
    least as much as the run's own summaries in it; the cost of the other items at that time is not recorded.
    """

    step = Step.MEND_RUN

    def state(self, target: Target) -> Values:
        run = CompactionRun.objects.get(pk=target.id)
        return {"tokens_before": run.tokens_before, "tokens_after": run.tokens_after, "details": run.details}

    def outlook(self, target: Target) -> Values:
        run = CompactionRun.objects.get(pk=target.id)
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
        """Never: the database refuses the recorded figures, which the details keep."""
        return False

    def apply(self, target: Target, log: AuditLog) -> Values:
        before = self.state(target)
        CompactionRun.objects.filter(pk=target.id).update(**self.outlook(target))
        return before

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        raise CannotRepair(
            f"The database refuses the figures that {target.id} had, so they cannot be restored. Its details keep them."
        )


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

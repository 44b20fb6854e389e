"""Records of compaction whose figures do not add up are set right."""

from __future__ import annotations

from typing import Any

from compaction.models import CompactionRun
from compaction.rendering import context_cost_of
from conversations.audit import AuditLog
from conversations.content.tokens import TokenEstimator
from conversations.models import Summary
from integrity.repairs.operations.operation import CannotRepair, Operation, Target, Values
from integrity.repairs.repair_planning import Step


class MendRun(Operation):
    """Sets the tokens of a run to figures that add up, and keeps in its details what was recorded.

    The difference is right, for it was summed up summary by summary, and stays. What the context cost after the run is
    at least what the run's own summaries in it cost; what other items cost at that moment is not recorded anywhere.
    """

    step = Step.MEND_RUN

    def state(self, target: Target) -> Values:
        run = self._run(target)
        return {"tokens_before": run.tokens_before, "tokens_after": run.tokens_after, "details": run.details}

    def outlook(self, target: Target) -> Values:
        run = self._run(target)
        before, after = run.tokens_before, run.tokens_after
        mended = mended_figures(before, after, left=_cost_of_what_is_left(run), may_grow=run.redone_summaries > 0)
        if mended == (before, after):
            raise CannotRepair(f"The figures of {target.id} add up.")
        recorded = {"tokens_before": before, "tokens_after": after}
        return {
            "tokens_before": mended[0],
            "tokens_after": mended[1],
            "details": {**run.details, "recorded_before_repair": recorded},
        }

    def is_reversible(self, target: Target) -> bool:
        """The database refuses what stands there; the step and the run's details keep it."""
        return False

    def apply(self, target: Target, log: AuditLog) -> Values:
        before = self.state(target)
        CompactionRun.objects.filter(pk=target.id).update(**self.outlook(target))
        return before

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        raise CannotRepair(
            f"The figures that {target.id} had cannot be put back: the database refuses them. Its details keep them."
        )

    def _run(self, target: Target) -> CompactionRun:
        return CompactionRun.objects.get(pk=target.id)


def mended_figures(before: int, after: int, *, left: int, may_grow: bool) -> tuple[int, int]:
    """Tokens before and after that add up, with what was saved between them and at least `left` after."""
    saved = before - after if may_grow else max(0, before - after)
    mended = max(after, left, -saved, 0)
    return mended + saved, mended


def _cost_of_what_is_left(run: CompactionRun) -> int:
    """What the summaries of the run cost in the context at its end: those that it did not take for another one."""
    made: dict[str, Any] = {
        summary.summary_id: summary.as_record()
        for summary in Summary.objects.filter(conversation_id=run.conversation_id, run_id=run.run_id).readable()
    }
    taken = Summary.objects.filter(derived_links__summary_id__in=made).values_list("pk", flat=True)
    superseded = {summary.supersedes_id for summary in made.values()}
    cost_of = context_cost_of(TokenEstimator.from_settings())
    return sum(cost_of(made[each]) for each in made.keys() - {*taken} - superseded)

"""Approve, apply and undo repair plans: all approved steps, or none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import structlog
from django.db import Error, transaction
from django.db.models import Count, Q
from django.utils import timezone

from compaction.run import compaction_lock
from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Invalid
from conversations.models import Conversation
from conversations.models.columns import record_of
from conversations.scope import Scope, Scoped
from conversations.store.derived_context import lock_conversations
from conversations.store.pages import newest_first
from integrity import models
from integrity.examination import Examination, batches_of
from integrity.invariants import INVARIANTS
from integrity.repairs.repair_operation import CannotRepair
from integrity.repairs.repair_plans import OPERATIONS, plan_of, plan_record
from integrity.reports import report_of
from integrity.types import PlanState, RepairPlanOutline, RepairPlanRecord, StepState

logger = structlog.get_logger(__name__)


class RepairOvertaken(Conflict):
    """The repaired rows have changed since the repair, so it cannot be undone."""

    code = "repair_overtaken"


class Repairs(Scoped):
    """The repair plans of a workspace: listed, approved, applied, undone."""

    def list_plans(
        self,
        *,
        report_id: str | None = None,
        state: PlanState | str | None = None,
        before_plan: str | None = None,
        limit: int = 20,
    ) -> list[RepairPlanOutline]:
        """List repair plans, newest first, with counts but without steps.

        Raises NotFound if there is no such report.
        """
        plans = self.scope.narrow(models.RepairPlan.objects.all())
        if report_id is not None:
            plans = plans.filter(report=report_of(self.scope, report_id))
        if state is not None:
            plans = plans.filter(state=PlanState(state))
        plans = newest_first(plans, before_plan, partial(plan_of, self.scope))
        proposed = Count("steps", filter=Q(steps__state=StepState.PROPOSED))
        return [
            record_of(
                RepairPlanOutline,
                plan,
                repair_id=plan.plan_id,
                state=PlanState(plan.state),
                ledger_file_id=plan.ledger_file_id or None,
                unplanned_count=len(plan.unplanned),
            )
            for plan in plans.annotate(step_count=Count("steps"), proposed_steps=proposed)[:limit]
        ]

    def get_plan(self, *, repair_id: str) -> RepairPlanRecord:
        """Show a repair plan with its steps and their states; raises NotFound."""
        return plan_record(plan_of(self.scope, repair_id))

    @transaction.atomic
    def approve_steps(
        self, *, repair_id: str, ordinals: Sequence[int], refused: Sequence[int] = ()
    ) -> RepairPlanRecord:
        """Approve steps of a repair plan, and reject others; nothing is applied yet.

        Raises NotFound; Invalid for an unknown step, or one that is both approved and refused; Conflict `plan_over` if
        the plan was applied, refused or undone (make another plan).
        """
        plan = plan_of(self.scope, repair_id, locked=True)
        _require(plan, PlanState.PROPOSED, PlanState.APPROVED)
        steps = {step.ordinal: step for step in plan.steps.all()}
        unknown = sorted({*ordinals, *refused} - steps.keys())
        if unknown:
            raise Invalid(f"{repair_id} has no step {unknown[0]}; it has {len(steps)}.")
        if set(ordinals) & set(refused):
            raise Invalid("A step cannot be both approved and refused; name it once.")
        approval = {"state": StepState.APPROVED, "approved_by": self.scope.actor, "approved_at": timezone.now()}
        plan.steps.filter(ordinal__in=ordinals).update(**approval)
        plan.steps.filter(ordinal__in=refused).update(state=StepState.REFUSED, approved_by="", approved_at=None)
        is_approved = plan.steps.filter(state=StepState.APPROVED).exists()
        plan.state = PlanState.APPROVED if is_approved else PlanState.PROPOSED
        plan.save(update_fields=["state"])
        for conversation_id in _conversations([steps[ordinal] for ordinal in ordinals]):
            detail = {"steps": sorted(ordinals)}
            self._log(conversation_id).record(
                Act.APPROVE_REPAIR, conversation_id=conversation_id, target=repair_id, detail=detail
            )
        return plan_record(plan)

    def apply_plan(self, *, repair_id: str) -> RepairPlanRecord:
        """Apply the approved steps in one transaction, if they add no findings.

        If the target of a step has changed since, the step becomes stale and nothing is applied. If the repair would
        add findings, it is rolled back, and `outcome` lists them. The returned plan's `state` is applied or refused.
        Raises NotFound; Conflict `nothing_approved` if no step is approved; Conflict `plan_over` if the plan was
        applied, refused or undone; ConversationBusy, retryable, while a compaction is running.
        """
        with self._lock_plan(repair_id, PlanState.APPROVED) as (plan, steps, conversation_ids):
            stale = [step for step in steps if not _is_unchanged(step)]
            if stale:
                plan.steps.filter(pk__in=[step.pk for step in stale]).update(state=StepState.STALE)
                outcome: dict[str, Any] = {"stale": [step.ordinal for step in stale]}
            else:
                outcome = self._apply_steps(steps, conversation_ids)
            plan.outcome = outcome
            if "after" in outcome:
                plan.state, plan.applied_at = PlanState.APPLIED, timezone.now()
                self._record(Act.APPLY_REPAIR, plan, conversation_ids)
                logger.info("repair_applied", repair_id=repair_id, steps=len(steps))
            else:
                plan.state = PlanState.REFUSED
            plan.save(update_fields=["state", "applied_at", "outcome"])
        return plan_record(plan)

    def undo_plan(self, *, repair_id: str) -> RepairPlanRecord:
        """Restore exactly the values before the plan was applied, or change nothing.

        Raises NotFound; CannotRepair if a step cannot be undone; RepairOvertaken if the repaired rows have changed
        since; ConversationBusy, retryable, while a compaction is running.
        """
        with self._lock_plan(repair_id, PlanState.APPLIED) as (plan, steps, conversation_ids):
            for step in reversed(steps):
                self._undo(step)
            for step in steps:
                if not _is_unchanged(step):
                    raise RepairOvertaken(f"Step {step.ordinal} could not be undone exactly, so nothing was changed.")
            plan.state, plan.undone_at = PlanState.UNDONE, timezone.now()
            plan.save(update_fields=["state", "undone_at"])
            plan.steps.filter(state=StepState.APPLIED).update(state=StepState.UNDONE)
            self._record(Act.UNDO_REPAIR, plan, conversation_ids)
        logger.info("repair_undone", repair_id=repair_id)
        return plan_record(plan)

    @contextmanager
    def _lock_plan(
        self, repair_id: str, state: PlanState
    ) -> Iterator[tuple[models.RepairPlan, list[models.RepairStep], list[int]]]:
        """Lock a plan in this state, and the conversations of its steps in that state.

        Yields the plan, these steps, and the ids of their conversations.
        """
        conversation_ids = _conversations(plan_of(self.scope, repair_id).steps.filter(state=state))
        with ExitStack() as locks:
            for conversation_id in conversation_ids:
                locks.enter_context(compaction_lock(conversation_id))
            with transaction.atomic():
                lock_conversations(conversation_ids)
                plan = plan_of(self.scope, repair_id, locked=True)
                _require(plan, state)
                steps = list(plan.steps.filter(state=state).order_by("ordinal"))
                if _conversations(steps) != conversation_ids:
                    raise Conflict(f"Other steps of {repair_id} were approved at this moment; try again.")
                yield plan, steps, conversation_ids

    def _apply_steps(self, steps: Sequence[models.RepairStep], conversation_ids: Sequence[int]) -> dict[str, Any]:
        """Apply steps if they add no findings; return the outcome."""
        before = _examine(conversation_ids)
        try:
            with transaction.atomic():
                for step in steps:
                    self._apply(step)
                after = _examine(conversation_ids)
                if added := _added_findings(before, after):
                    transaction.set_rollback(True)
                    return {"added": added}
        except CannotRepair as refusal:
            return {"why": refusal.detail}
        except Error as refusal:
            return {"why": f"The database refused it: {type(refusal).__name__}."}
        return {"before": _broken_counts(before), "after": _broken_counts(after)}

    def _apply(self, step: models.RepairStep) -> None:
        operation = OPERATIONS[step.operation]
        undo = operation.apply(step, self._log(step.conversation_id))
        step.undo = {"data": undo, "left": operation.state(step)}
        step.state, step.applied_at = StepState.APPLIED, timezone.now()
        step.save(update_fields=["undo", "state", "applied_at"])

    def _undo(self, step: models.RepairStep) -> None:
        operation = OPERATIONS[step.operation]
        # An erasure removes the values before the step.
        if step.undo is None or operation.state(step) != step.undo["left"]:
            raise RepairOvertaken(f"What step {step.ordinal} repaired has changed since, so nothing was undone.")
        try:
            with transaction.atomic():
                operation.undo(step, step.undo["data"], self._log(step.conversation_id))
        except Error as refusal:
            raise CannotRepair(
                f"Step {step.ordinal} cannot be undone: the database refuses the values before it."
            ) from refusal

    def _record(self, act: Act, plan: models.RepairPlan, conversation_ids: Sequence[int | None]) -> None:
        # A plan that is only about grants, arcs and epochs belongs to no conversation.
        for conversation_id in conversation_ids or [None]:
            self._log(conversation_id).record(act, conversation_id=conversation_id, target=plan.plan_id)

    def _log(self, conversation_id: int | None) -> AuditLog:
        """Return the audit log of the workspace of a conversation."""
        if conversation_id is None:
            return AuditLog(self.scope)
        workspace_id = Conversation.objects.values_list("workspace_id", flat=True).get(pk=conversation_id)
        return AuditLog(Scope(workspace_id, actor=self.scope.actor))


def _is_unchanged(step: models.RepairStep) -> bool:
    try:
        return OPERATIONS[step.operation].state(step) == step.before
    except CannotRepair:
        return False


def _require(plan: models.RepairPlan, *states: PlanState) -> None:
    if plan.state not in states:
        raise Conflict(
            f"{plan.plan_id} is {plan.state}, but must be {' or '.join(states)} for this.",
            code="nothing_approved" if plan.state == PlanState.PROPOSED else "plan_over",
        )


def _conversations(steps: Iterable[models.RepairStep]) -> list[int]:
    # Sorted, so that two transactions that each lock several conversations cannot deadlock.
    return sorted({step.conversation_id for step in steps if step.conversation_id is not None})


def _examine(conversation_ids: Sequence[int]) -> Examination:
    """Check these conversations as they are now."""
    examined = Examination(INVARIANTS, thorough=False)
    for batch in batches_of(Conversation.objects.filter(pk__in=conversation_ids)):
        examined.check(batch)
    return examined


def _added_findings(before: Examination, after: Examination) -> list[dict[str, Any]]:
    """Return the new findings: compared one by one if all are listed, else by number."""
    known = {(code, finding.conversation_id, finding.id) for code, finding in before.listed_findings}
    added = [
        {"code": code, "id": finding.id, "detail": finding.detail}
        for code, finding in sorted(after.listed_findings, key=lambda each: (each[0], each[1].id))
        if (code, finding.conversation_id, finding.id) not in known and before.lists_all(code)
    ]
    listed = {each["code"] for each in added}
    more = [
        {"code": code, "id": "", "detail": f"{count} findings instead of {before.counts.get(code, 0)}"}
        for code, count in after.counts.items()
        if count > before.counts.get(code, 0) and code not in listed
    ]
    return [*added, *more]


def _broken_counts(examined: Examination) -> dict[str, int]:
    return {code: count for code, count in examined.counts.items() if count}

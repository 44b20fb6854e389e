"""Make and store a repair plan for a report, without repairing anything.

Each step shows the values before and after it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from django.db import transaction
from django.utils import timezone

from compaction.history.history_renewal import damaged
from conversations.errors import Conflict
from conversations.models import ContextItem, Conversation, Quarantine, Summary
from conversations.models.columns import record_of
from conversations.scope import Scope
from conversations.sql import array, load, rows
from integrity import models
from integrity.repairs.quarantines import Release, Withhold
from integrity.repairs.rebuild_derived import (
    RebuildContext,
    Recount,
    RedoHistory,
    RedoSummary,
    Relink,
    relinkable_sources,
    superseded,
)
from integrity.repairs.repair_operation import CannotRepair, Operation
from integrity.repairs.repair_planning import RESTORABLE, Facts, FindingKey, Step, propose
from integrity.repairs.repair_work import CloseHistoryJob, CloseJob, CloseRun, ExpireGrant, MendRun
from integrity.repairs.restore_from_ledger import RestoreFromLedger
from integrity.types import PlanState, RepairPlanRecord, Risk, StepRecord, StepState, Unplanned

SQL = load("integrity/repairs.sql")

# No operation edits, renumbers or deletes appended messages.
OPERATIONS: Mapping[str, Operation] = {
    Step.RESTORE_FROM_LEDGER: RestoreFromLedger(),
    Step.RELINK: Relink(),
    Step.QUARANTINE: Withhold(),
    Step.RELEASE: Release(),
    Step.REDO_SUMMARY: RedoSummary(),
    Step.REDO_HISTORY: RedoHistory(),
    Step.REBUILD_CONTEXT: RebuildContext(),
    Step.RECOUNT: Recount(),
    Step.MEND_RUN: MendRun(),
    Step.CLOSE_JOB: CloseJob(),
    Step.CLOSE_HISTORY_JOB: CloseHistoryJob(),
    Step.CLOSE_RUN: CloseRun(),
    Step.EXPIRE_GRANT: ExpireGrant(),
}


def make_plan(report: models.IntegrityReport, *, ledger_file_id: str = "") -> models.RepairPlan:
    """Make a plan for the findings that a report lists.

    Raises Conflict if the check is still running.
    """
    if report.finished_at is None:
        raise Conflict(f"The check {report.report_id} is still running; try again later.", code="report_unfinished")
    findings = [
        FindingKey(finding.code, finding.conversation_id, finding.target)
        for finding in report.findings.order_by("finding_id").only("code", "conversation_id", "target")
    ]
    plan = models.RepairPlan(
        plan_id=f"repair_{secrets.token_hex(8)}",
        report=report,
        created_at=timezone.now(),
        ledger_file_id=ledger_file_id,
    )
    proposals, unplanned = propose(findings, _facts(findings, plan))
    steps: list[models.RepairStep] = []
    for proposal in proposals:
        operation = OPERATIONS[proposal.operation]
        step = models.RepairStep(plan=plan, ordinal=len(steps) + 1, **vars(proposal))
        try:
            step.before, step.after = operation.state(step), operation.outlook(step)
            step.reversible = operation.is_reversible(step)
            steps.append(step)
        except CannotRepair as refusal:
            unplanned += [Unplanned(code, step.conversation_id, step.target, refusal.detail) for code in step.codes]
    plan.unplanned = [vars(each) for each in unplanned]
    with transaction.atomic():
        plan.save(force_insert=True)
        models.RepairStep.objects.bulk_create(steps, batch_size=500)
    return plan


def plan_of(scope: Scope, repair_id: str, *, locked: bool = False) -> models.RepairPlan:
    """Return the row of a plan; raises NotFound if the scope does not have it."""
    plans = models.RepairPlan.objects.select_related("report")
    if locked:
        plans = plans.select_for_update(of=("self",))
    return scope.find(plans, "repair plan", repair_id, pk=repair_id)


def plan_record(plan: models.RepairPlan) -> RepairPlanRecord:
    return record_of(
        RepairPlanRecord,
        plan,
        repair_id=plan.plan_id,
        state=PlanState(plan.state),
        ledger_file_id=plan.ledger_file_id or None,
        steps=tuple(map(_step_record, plan.steps.order_by("ordinal"))),
        unplanned=tuple(Unplanned(**each) for each in plan.unplanned),
    )


def _step_record(step: models.RepairStep) -> StepRecord:
    return record_of(StepRecord, step, risk=Risk(step.risk), codes=tuple(step.codes), state=StepState(step.state))


def _facts(findings: Sequence[FindingKey], plan: models.RepairPlan) -> Facts:
    ids = {finding.conversation_id for finding in findings if finding.conversation_id is not None}
    summaries = {finding.id for finding in findings if finding.id.startswith("sum_")}
    sessions = {finding.id for finding in findings if finding.id.startswith("ses_")}
    replaced = superseded(sessions)
    messages = [int(finding.id[4:]) for finding in findings if finding.id.startswith("msg_")]
    known = frozenset(Conversation.objects.filter(pk__in=ids).values_list("pk", flat=True))
    held = Quarantine.objects.filter(conversation_id__in=ids, released_at__isnull=True)
    return Facts(
        restorable=frozenset(_restorable(findings, known, plan)) if plan.ledger_file_id else frozenset(),
        relinkable=frozenset(
            each.pk for each in Summary.objects.filter(pk__in=summaries) if relinkable_sources(each) is not None
        ),
        remakeable=frozenset(
            ContextItem.objects.filter(summary_id__in=summaries, summary__superseded_by__isnull=True).values_list(
                "summary_id", flat=True
            )
        ),
        remakeable_history=damaged(sessions - replaced),
        superseded_history=replaced,
        quarantined=frozenset(held.values_list("target", flat=True)),
        after_gaps=frozenset(id for (id,) in rows(SQL["messages_after_gaps"], [array(messages)])),
        conversations=known,
    )


def _restorable(
    findings: Sequence[FindingKey], conversation_ids: frozenset[int], plan: models.RepairPlan
) -> Iterator[tuple[int | None, str]]:
    """Yield the damaged items that the ledger contains with matching hashes."""
    for conversation_id, id in {finding.item for finding in findings if finding.code in RESTORABLE}:
        if conversation_id in conversation_ids and not id.startswith("cold_"):
            step = models.RepairStep(plan=plan, conversation_id=conversation_id, target=id)
            with suppress(CannotRepair):
                OPERATIONS[Step.RESTORE_FROM_LEDGER].outlook(step)
                yield conversation_id, id

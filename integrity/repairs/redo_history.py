"""The repair operation that regenerates session, arc and epoch summaries."""

from __future__ import annotations

from collections.abc import Collection

from compaction.history.history_redo import request_redo
from compaction.history.models import HistoryJob, SessionSummary
from compaction.history.types import HistoryReason
from compaction.types import JobState
from conversations.audit import AuditLog
from integrity.models import RepairStep
from integrity.repairs.repair_operation import CannotRepair, Operation, Values
from integrity.repairs.repair_planning import Step


def superseded(summary_ids: Collection[str]) -> frozenset[str]:
    """Return the ids of those given summaries that another summary supersedes."""
    found = SessionSummary.objects.filter(supersedes__in=summary_ids)
    return frozenset(found.values_list("supersedes_id", flat=True))


class RedoHistory(Operation):
    """Request a new summary, which supersedes the damaged one."""

    kind = Step.REDO_HISTORY

    def state(self, step: RepairStep) -> Values:
        return {
            "superseded_by": list(SessionSummary.objects.filter(supersedes=step.target).values_list("pk", flat=True))
        }

    def outlook(self, step: RepairStep) -> Values:
        if superseded([step.target]):
            raise CannotRepair(f"{step.target} is superseded already.")
        summary = SessionSummary.objects.get(pk=step.target)
        if summary.conversation_id is None and not summary.child_links.exists():
            raise CannotRepair(f"{step.target} has lost all members; they go into other summaries.")
        return {"job": HistoryReason.MANUAL.value}

    def apply(self, step: RepairStep, log: AuditLog) -> Values:
        return {"job_id": request_redo(SessionSummary.objects.get(pk=step.target))}

    def undo(self, step: RepairStep, undo: Values, log: AuditLog) -> None:
        """Delete the job if no worker has started it; otherwise raise CannotRepair."""
        waiting = HistoryJob.objects.filter(pk=undo["job_id"], state=JobState.QUEUED, attempts=0)
        # Several steps may have requested the same job: another step's undo may have deleted it.
        if not waiting.delete()[0] and HistoryJob.objects.filter(pk=undo["job_id"]).exists():
            super().undo(step, undo, log)

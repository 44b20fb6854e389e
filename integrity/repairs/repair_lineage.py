"""Repair summaries: restore links that the hash proves, redo damaged texts."""

from __future__ import annotations

from django.db import connection

from compaction.background import jobs
from compaction.models import CompactionJob
from compaction.types import JobState, Reason
from conversations.audit import AuditLog
from conversations.content import hashing
from conversations.models import Summary
from conversations.sql import load, rows
from integrity.models import RepairStep
from integrity.repairs.repair_operation import CannotRepair, Operation, Values
from integrity.repairs.repair_planning import Step

SQL = load("integrity/repairs.sql")
_PLACE = ("summary_id", "conversation_id", "first_seq", "last_seq", "depth")


Sources = tuple[list[int], list[str]]


def relinkable_sources(summary: Summary) -> Sources | None:
    """Return the unused sources in a summary's range, if they prove what it lost.

    They do if they give its hash, and it has links to only some of them.
    """
    place = {name: getattr(summary, name) for name in _PLACE}
    messages = rows(SQL["unused_messages"], place)
    summaries = rows(SQL["unused_summaries"], place)
    hashes = [hash for _, hash in (*messages, *summaries)]
    sources = [id for id, _ in messages], [id for id, _ in summaries]
    is_sealed = hashing.summary_hash(hashes, summary.content) == bytes(summary.summary_hash)
    return sources if is_sealed and set(_linked(summary.summary_id)) < set(_ids(sources)) else None


def _linked(summary_id: str) -> list[str]:
    return [id for (id,) in rows(SQL["linked_sources"], {"summary_id": summary_id})]


def _ids(sources: Sources) -> list[str]:
    messages, summaries = sources
    return sorted([*(f"msg_{each}" for each in messages), *summaries])


class Relink(Operation):
    """Link a summary to the sources that it lost, if they give exactly its hash."""

    kind = Step.RELINK

    def state(self, step: RepairStep) -> Values:
        return {"sources": _linked(step.target)}

    def outlook(self, step: RepairStep) -> Values:
        return {"sources": _ids(self._sources(step))}

    def is_reversible(self, step: RepairStep) -> bool:
        return False

    def apply(self, step: RepairStep, log: AuditLog) -> Values:
        messages, summaries = self._sources(step)
        with connection.cursor() as cursor:
            cursor.execute(SQL["link_messages"], [step.target, messages])
            cursor.execute(SQL["link_summaries"], [step.target, summaries])
        return {}

    def _sources(self, step: RepairStep) -> Sources:
        sources = relinkable_sources(Summary.objects.get(pk=step.target))
        if sources is None:
            raise CannotRepair(f"No sources give the hash of {step.target}.")
        return sources


class RedoSummary(Operation):
    """Request a new summary from the same sources; it supersedes the damaged one."""

    kind = Step.REDO_SUMMARY

    def state(self, step: RepairStep) -> Values:
        superseded = Summary.objects.filter(supersedes_id=step.target).values_list("pk", flat=True)
        return {"superseded_by": list(superseded)}

    def outlook(self, step: RepairStep) -> Values:
        if Summary.objects.filter(supersedes_id=step.target).exists():
            raise CannotRepair(f"{step.target} is superseded already.")
        return {"job": Reason.REDO.value}

    def apply(self, step: RepairStep, log: AuditLog) -> Values:
        return {"job_id": jobs.request(conversation_id=step.of_conversation, reason=Reason.REDO)}

    def undo(self, step: RepairStep, undo: Values, log: AuditLog) -> None:
        """Delete a job that no worker has begun; a finished summary stays."""
        waiting = CompactionJob.objects.filter(pk=undo["job_id"], state=JobState.QUEUED, attempts=0)
        if not waiting.delete()[0]:
            super().undo(step, undo, log)

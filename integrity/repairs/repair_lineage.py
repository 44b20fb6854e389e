"""Repair summaries: restore links that the hash proves, redo damaged texts."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from compaction.background import jobs
from compaction.models import CompactionJob
from compaction.types import JobState, Reason
from conversations.audit import AuditLog
from conversations.content import hashing
from conversations.models import Summary
from conversations.sql import load, rows
from integrity.repairs.repair_operation import CannotRepair, Operation, Target, Values
from integrity.repairs.repair_planning import Step

SQL = load("integrity/repairs.sql")


@dataclass(frozen=True)
class Sources:
    """The sources of a summary that its hash proves."""

    message_ids: tuple[int, ...]
    summary_ids: tuple[str, ...]

    @property
    def ids(self) -> list[str]:
        return sorted([*(f"msg_{each}" for each in self.message_ids), *self.summary_ids])


def sealed_sources(summary: Summary) -> Sources | None:
    """Return the unused sources in a summary's range, if they give its hash."""
    place = {
        "summary_id": summary.summary_id,
        "conversation_id": summary.conversation_id,
        "first_seq": summary.first_seq,
        "last_seq": summary.last_seq,
        "depth": summary.depth,
    }
    summaries = rows(SQL["unused_summaries"], place)
    messages = rows(SQL["unused_messages"], place)
    hashes = [hash for _, hash in (*messages, *summaries)]
    if hashing.summary_hash(hashes, summary.content) != bytes(summary.summary_hash):
        return None
    return Sources(tuple(id for id, _ in messages), tuple(id for id, _ in summaries))


def relinkable_sources(summary: Summary) -> Sources | None:
    """Return the proven sources, if the summary has links to only some of them."""
    sources = sealed_sources(summary)
    linked = {id for (id,) in rows(SQL["linked_sources"], {"summary_id": summary.summary_id})}
    return sources if sources is not None and linked < set(sources.ids) else None


class Relink(Operation):
    """Link a summary to the sources that it lost, if they give exactly its hash."""

    step = Step.RELINK

    def state(self, target: Target) -> Values:
        return {"sources": [id for (id,) in rows(SQL["linked_sources"], {"summary_id": target.id})]}

    def outlook(self, target: Target) -> Values:
        return {"sources": self._sources(target).ids}

    def is_reversible(self, target: Target) -> bool:
        return False

    def apply(self, target: Target, log: AuditLog) -> Values:
        sources = self._sources(target)
        with connection.cursor() as cursor:
            cursor.execute(SQL["link_messages"], [target.id, list(sources.message_ids)])
            cursor.execute(SQL["link_summaries"], [target.id, list(sources.summary_ids)])
        return {}

    def _sources(self, target: Target) -> Sources:
        sources = relinkable_sources(Summary.objects.get(pk=target.id))
        if sources is None:
            raise CannotRepair(f"No sources give the hash of {target.id}.")
        return sources


class RedoSummary(Operation):
    """Request a new summary from the same sources; it supersedes the damaged one."""

    step = Step.REDO_SUMMARY

    def state(self, target: Target) -> Values:
        superseded = Summary.objects.filter(supersedes_id=target.id).values_list("pk", flat=True)
        return {"superseded_by": list(superseded)}

    def outlook(self, target: Target) -> Values:
        if Summary.objects.filter(supersedes_id=target.id).exists():
            raise CannotRepair(f"{target.id} is superseded already.")
        return {"job": Reason.REDO.value}

    def apply(self, target: Target, log: AuditLog) -> Values:
        return {"job_id": jobs.request(conversation_id=target.conversation, reason=Reason.REDO)}

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        """Delete a job that no worker has begun; a finished summary stays."""
        waiting = CompactionJob.objects.filter(pk=undo["job_id"], state=JobState.QUEUED, attempts=0)
        if not waiting.delete()[0]:
            super().undo(target, undo, log)

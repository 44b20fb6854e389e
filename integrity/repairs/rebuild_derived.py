"""Repair operations that rebuild contexts, counters, links and summaries."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from django.db import connection
from pydantic import TypeAdapter

from compaction.background import jobs
from compaction.history.models import HistoryJob, SessionSummary
from compaction.history.session_history import request_redo
from compaction.history.types import HistoryReason
from compaction.models import CompactionJob
from compaction.rendering import context_cost_of
from compaction.types import JobState, Reason
from conversations.audit import AuditLog
from conversations.content import hashing
from conversations.content.tokens import TokenEstimator
from conversations.errors import Conflict
from conversations.models import Message, Summary
from conversations.sql import load, rows
from conversations.store.derived_context import (
    ContextChange,
    CountsChange,
    ItemRow,
    change_context,
    change_counts,
    context_difference,
    count_anew,
    lock_conversations,
)
from conversations.types import ContextItemType
from integrity.models import RepairStep
from integrity.repairs.repair_operation import CannotRepair, Operation, Values

# A step shows at most this many rows of a change. It keeps all of them for undoing.
MOST_SHOWN = 50

SQL = load("integrity/repairs.sql")
_ITEMS = TypeAdapter(tuple[ItemRow, ...])
_COUNTS = TypeAdapter(list[CountsChange])


class RebuildContext(Operation):
    """Replace the stored context with the one derived from lineage, and recount it."""

    def state(self, step: RepairStep) -> Values:
        [(items, hash)] = rows(SQL["context_hash"], [step.of_conversation])
        counts = count_anew(step.of_conversation).before
        return {
            "items": items,
            "hash": hash,
            "active_messages": counts.active_messages,
            "active_tokens": counts.active_tokens,
        }

    def outlook(self, step: RepairStep) -> Values:
        change = self._change(step.of_conversation)
        return {
            "removed": [_shown(row) for row in change.removed[:MOST_SHOWN]],
            "removed_count": len(change.removed),
            "added": [_shown(row) for row in change.added[:MOST_SHOWN]],
            "added_count": len(change.added),
        }

    def is_reversible(self, step: RepairStep) -> bool:
        """Whether each removed item points at one row; the database refuses all others."""
        change = self._change(step.of_conversation)
        messages = {row.message_id for row in change.removed if row.message_id is not None}
        summaries = {row.summary_id for row in change.removed if row.summary_id is not None}
        return (
            Message.objects.filter(pk__in=messages).count() == len(messages)
            and Summary.objects.filter(pk__in=summaries).count() == len(summaries)
            and all(_points_at_one_thing(row) for row in change.removed)
        )

    def apply(self, step: RepairStep, log: AuditLog) -> Values:
        change = self._change(step.of_conversation)
        lock_conversations(change.conversation_ids)
        change_context(change)
        counted = [_count_context(conversation_id) for conversation_id in change.conversation_ids]
        return {
            "removed": _ITEMS.dump_python(change.removed, mode="json"),
            "added": _ITEMS.dump_python(change.added, mode="json"),
            "counts": _COUNTS.dump_python(counted),
        }

    def undo(self, step: RepairStep, undo: Values, log: AuditLog) -> None:
        for each in _COUNTS.validate_python(undo["counts"]):
            change_counts(each.reversed())
        removed, added = (_ITEMS.validate_python(undo[name]) for name in ("removed", "added"))
        change_context(ContextChange(step.of_conversation, removed=added, added=removed))

    def _change(self, conversation_id: int) -> ContextChange:
        try:
            return context_difference(conversation_id, cost_of=context_cost_of(TokenEstimator.from_settings()))
        except Conflict as contradiction:
            raise CannotRepair(contradiction.detail) from contradiction


class Recount(Operation):
    """Count one counter of a conversation again, and store the result.

    The target of the step is the name of the counter.
    """

    def state(self, step: RepairStep) -> Values:
        return {step.target: getattr(count_anew(step.of_conversation).before, step.target)}

    def outlook(self, step: RepairStep) -> Values:
        return {step.target: getattr(self._change(step).after, step.target)}

    def apply(self, step: RepairStep, log: AuditLog) -> Values:
        change = self._change(step)
        change_counts(change)
        return {step.target: getattr(change.before, step.target)}

    def undo(self, step: RepairStep, undo: Values, log: AuditLog) -> None:
        current = count_anew(step.of_conversation).before
        change_counts(CountsChange(step.of_conversation, before=current, after=replace(current, **undo)))

    def _change(self, step: RepairStep) -> CountsChange:
        counted = count_anew(step.of_conversation)
        after = replace(counted.before, **{step.target: getattr(counted.after, step.target)})
        if after == counted.before:
            raise CannotRepair(f"{step.target} is evidence of missing rows, so it stays.")
        return replace(counted, after=after)


def _count_context(conversation_id: int) -> CountsChange:
    """Recount the context only, because other counters have their own steps."""
    counted = count_anew(conversation_id)
    after = counted.after
    kept = replace(counted.before, active_messages=after.active_messages, active_tokens=after.active_tokens)
    change = replace(counted, after=kept)
    change_counts(change)
    return change


def _points_at_one_thing(row: ItemRow) -> bool:
    is_message = row.item_type is ContextItemType.MESSAGE
    return (row.message_id is not None) == is_message and (row.summary_id is not None) == (not is_message)


def _shown(row: ItemRow) -> dict[str, Any]:
    """Return the fields of a context item that a step shows."""
    return {"ordinal": row.ordinal, "id": row.summary_id or f"msg_{row.message_id}", "tokens": row.token_count}


_PLACE = ("summary_id", "conversation_id", "first_seq", "last_seq", "depth")


Sources = tuple[list[int], list[str]]


def relinkable_sources(summary: Summary) -> Sources | None:
    """Return the sources of a summary with lost links, if its hash proves them.

    Candidates are the messages and summaries in its range that are a source of no other summary.
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
    """Restore the links of a summary to its sources, if these give exactly its hash."""

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

    def state(self, step: RepairStep) -> Values:
        return {"superseded_by": list(Summary.objects.filter(supersedes=step.target).values_list("pk", flat=True))}

    def outlook(self, step: RepairStep) -> Values:
        if Summary.objects.filter(supersedes_id=step.target).exists():
            raise CannotRepair(f"{step.target} is superseded already.")
        return {"job": Reason.REDO.value}

    def apply(self, step: RepairStep, log: AuditLog) -> Values:
        return {"job_id": jobs.request(conversation_id=step.of_conversation, reason=Reason.REDO)}

    def undo(self, step: RepairStep, undo: Values, log: AuditLog) -> None:
        """Delete the job if no worker has started it; otherwise raise CannotRepair."""
        waiting = CompactionJob.objects.filter(pk=undo["job_id"], state=JobState.QUEUED, attempts=0)
        if not waiting.delete()[0]:
            super().undo(step, undo, log)


def superseded(summary_ids: Collection[str]) -> frozenset[str]:
    """Return the ids of those given summaries that another summary supersedes."""
    found = SessionSummary.objects.filter(supersedes__in=summary_ids)
    return frozenset(found.values_list("supersedes_id", flat=True))


class RedoHistory(Operation):
    """Request a new summary, which supersedes the damaged one."""

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

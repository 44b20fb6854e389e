"""Rebuild contexts and counters from messages, summaries and links."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from compaction.rendering import context_cost_of
from conversations.audit import AuditLog
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
    hold,
)
from conversations.types import ContextItemType
from integrity.models import RepairStep
from integrity.repairs.repair_operation import CannotRepair, Operation, Values
from integrity.repairs.repair_planning import Step

# A step shows this many rows of a change; it keeps all of them for undoing.
MOST_SHOWN = 50

SQL = load("integrity/repairs.sql")
_ITEMS = TypeAdapter(tuple[ItemRow, ...])
_COUNTS = TypeAdapter(list[CountsChange])


class RebuildContext(Operation):
    """Replace the stored context with the one derived from lineage, and recount it."""

    kind = Step.REBUILD_CONTEXT

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
        """The database refuses to insert items that point at nothing, or at two rows."""
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
        hold(change.conversation_ids)
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
    """Set one counter of a conversation to a recount.

    The target is the counter's name.
    """

    kind = Step.RECOUNT

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
    """Recount the context; other counters have their own step."""
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
    """Return a context item as a step shows it."""
    return {"ordinal": row.ordinal, "id": row.summary_id or f"msg_{row.message_id}", "tokens": row.token_count}

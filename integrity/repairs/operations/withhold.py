"""Quarantine damaged items, which no model is shown then, and release them."""

from __future__ import annotations

from django.db.models import F
from django.utils import timezone

from conversations.audit import Act, AuditLog
from conversations.models import Conversation, Quarantine
from integrity.repairs.operations.operation import CannotRepair, Operation, Target, Values
from integrity.repairs.repair_planning import Step


class Withhold(Operation):
    """Quarantine an item; its row stays unchanged."""

    step = Step.QUARANTINE

    def state(self, target: Target) -> Values:
        return {"quarantined": _open(target.id) is not None}

    def outlook(self, target: Target) -> Values:
        if _open(target.id) is not None:
            raise CannotRepair(f"{target.id} is quarantined already.")
        return {"quarantined": True}

    def apply(self, target: Target, log: AuditLog) -> Values:
        held = quarantine(target.conversation, target.id, reason=target.why, log=log)
        return {"quarantine_id": held.quarantine_id}

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        release(Quarantine.objects.get(pk=undo["quarantine_id"]), log=log)


class Release(Operation):
    """Release an item from quarantine."""

    step = Step.RELEASE

    def state(self, target: Target) -> Values:
        return {"quarantined": _open(target.id) is not None}

    def outlook(self, target: Target) -> Values:
        if _open(target.id) is None:
            raise CannotRepair(f"{target.id} is not quarantined.")
        return {"quarantined": False}

    def apply(self, target: Target, log: AuditLog) -> Values:
        held = _open(target.id)
        assert held is not None, "the step's state says so"
        release(held, log=log)
        return {"reason": held.reason}

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        quarantine(target.conversation, target.id, reason=undo["reason"], log=log)


def quarantine(conversation_id: int, target: str, *, reason: str, log: AuditLog) -> Quarantine:
    """Withhold an item of a conversation and count it.

    The caller locks the conversation's row.
    """
    held = Quarantine.objects.create(conversation_id=conversation_id, target=target, reason=reason)
    Conversation.objects.filter(pk=conversation_id).update(quarantined=F("quarantined") + 1)
    log.record(Act.QUARANTINE, conversation_id=conversation_id, target=target)
    return held


def release(held: Quarantine, *, log: AuditLog) -> None:
    """Show an item again; the quarantine stays on record."""
    Quarantine.objects.filter(pk=held.pk).update(released_at=timezone.now())
    Conversation.objects.filter(pk=held.conversation_id).update(quarantined=F("quarantined") - 1)
    log.record(Act.RELEASE, conversation_id=held.conversation_id, target=held.target)


def _open(target: str) -> Quarantine | None:
    return Quarantine.objects.filter(target=target, released_at__isnull=True).first()

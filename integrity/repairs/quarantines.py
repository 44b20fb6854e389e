"""Quarantine damaged items, so that no model reads them, and release them."""

from __future__ import annotations

import re
from dataclasses import replace

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from compaction.sources import text_of, withheld_items
from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Invalid, NotFound
from conversations.files.large_files import LargeFileService
from conversations.models import Conversation, MessagePart, Quarantine
from conversations.models.columns import record_of
from conversations.scope import Scoped
from conversations.store.read import messages_of
from integrity.models import RepairStep
from integrity.repairs.repair_operation import CannotRepair, Operation, Values
from integrity.types import QuarantinedText, QuarantineRecord

# The maximum number of lines of a quarantined file that are shown.
MOST_LINES = 10_000
_ID = re.compile(r"(?P<kind>msg|sum|part|file)_(?P<rest>[0-9A-Za-z_-]{1,100})")


class Quarantines(Scoped):
    """The quarantines of one workspace or, for the site administrator, of all."""

    def list_quarantines(
        self,
        *,
        conversation_id: int | None = None,
        released: bool = False,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[QuarantineRecord]:
        """List open quarantines, newest first; `released` includes released ones.

        Raises NotFound if there is no such conversation.
        """
        rows = Quarantine.objects.order_by("-quarantine_id")
        rows = self.scope.filter_rows(rows, conversation_id=conversation_id, pk__lt=before_id)
        if not released:
            rows = rows.filter(released_at__isnull=True)
        return [record_of(QuarantineRecord, row) for row in rows[:limit]]

    @transaction.atomic
    def quarantine(self, *, id: str, reason: str) -> QuarantineRecord:
        """Withhold a message, summary, part or file from every model; its row stays.

        Raises NotFound; Invalid for another kind of id; Conflict `quarantined` if it is already quarantined.
        """
        conversation_id = self._conversation_of(id)
        self.scope.conversation(conversation_id, locked=True)
        if _open_quarantine(id) is not None:
            raise Conflict(f"{id} is already quarantined.", code="quarantined")
        held = quarantine(conversation_id, id, reason=reason, log=AuditLog(self.scope))
        held.refresh_from_db()
        return record_of(QuarantineRecord, held)

    @transaction.atomic
    def release(self, *, quarantine_id: int) -> QuarantineRecord:
        """End a quarantine: models can read the item's text again.

        Raises NotFound; Conflict `released` if it was already released.
        """
        held = self.scope.find(Quarantine.objects.all(), "quarantine", quarantine_id, pk=quarantine_id)
        self.scope.conversation(held.conversation_id, locked=True)
        held.refresh_from_db()
        if held.released_at is not None:
            raise Conflict(f"{held.target} was already released.", code="released")
        release(held, log=AuditLog(self.scope))
        held.refresh_from_db()
        return record_of(QuarantineRecord, held)

    @transaction.atomic
    def read_quarantined(self, *, id: str) -> QuarantinedText:
        """Read the stored text of an item that is withheld by a quarantine.

        The item is a quarantined message, summary, part or file, or a summary made from one. For a part, its whole
        message is returned; for a file, its first lines. The audit log records who read it. Raises NotFound; Invalid
        for another kind of id; Conflict `not_quarantined` if the item is not withheld.
        """
        conversation_id = self._conversation_of(id)
        if id.startswith("part_"):
            id = f"msg_{MessagePart.objects.values_list('message_id', flat=True).get(pk=id)}"
        if id not in withheld_items(conversation_id):
            raise Conflict(f"{id} is not quarantined: `lcm describe {id}` shows it.", code="not_quarantined")
        text = self._withheld_text(id, conversation_id)
        AuditLog(self.scope).record(Act.READ_QUARANTINED, conversation_id=conversation_id, target=id)
        return text

    def _withheld_text(self, id: str, conversation_id: int) -> QuarantinedText:
        if id.startswith("msg_"):
            [message] = messages_of([int(id.removeprefix("msg_"))])
            return QuarantinedText(id, conversation_id, message.content, message=replace(message, quarantined=True))
        if id.startswith("sum_"):
            return QuarantinedText(id, conversation_id, text_of(id))
        files = replace(LargeFileService.from_settings(self.scope), with_quarantined=True)
        lines = files.read_lines(file_id=id, line_count=MOST_LINES)
        return QuarantinedText(id, conversation_id, lines.text, is_cut=lines.is_cut or lines.next_line is not None)

    def _conversation_of(self, id: str) -> int:
        found = _ID.fullmatch(id)
        if found is None:
            raise Invalid(f"{id[:80]!r} is not the id of a message, summary, part or file.")
        match found["kind"]:
            case "msg" if found["rest"].isdecimal() and not found["rest"].startswith("0"):
                return self.scope.message(int(found["rest"])).conversation_id
            case "sum":
                return self.scope.summary(id).conversation_id
            case "file":
                return self.scope.file(id).conversation_id
            case "part" if part := MessagePart.objects.filter(pk=id).first():
                return self.scope.message(part.message_id).conversation_id
        raise NotFound(f"There is no {id[:80]!r} that you may see.")


class Withhold(Operation):
    """Quarantine an item; its row stays unchanged."""

    def state(self, step: RepairStep) -> Values:
        return {"quarantined": _open_quarantine(step.target) is not None}

    def outlook(self, step: RepairStep) -> Values:
        return {"quarantined": True}

    def apply(self, step: RepairStep, log: AuditLog) -> Values:
        held = quarantine(step.of_conversation, step.target, reason=step.why, log=log)
        return {"quarantine_id": held.quarantine_id}

    def undo(self, step: RepairStep, undo: Values, log: AuditLog) -> None:
        release(Quarantine.objects.get(pk=undo["quarantine_id"]), log=log)


class Release(Withhold):
    """Release an item from quarantine."""

    def outlook(self, step: RepairStep) -> Values:
        if _open_quarantine(step.target) is None:
            raise CannotRepair(f"{step.target} is not quarantined.")
        return {"quarantined": False}

    def apply(self, step: RepairStep, log: AuditLog) -> Values:
        held = Quarantine.objects.get(target=step.target, released_at=None)
        release(held, log=log)
        return {"reason": held.reason}

    def undo(self, step: RepairStep, undo: Values, log: AuditLog) -> None:
        quarantine(step.of_conversation, step.target, reason=undo["reason"], log=log)


def quarantine(conversation_id: int, target: str, *, reason: str, log: AuditLog) -> Quarantine:
    """Quarantine an item, and increment the conversation's counter of quarantines.

    The caller locks the conversation's row.
    """
    held = Quarantine.objects.create(conversation_id=conversation_id, target=target, reason=reason)
    Conversation.objects.filter(pk=conversation_id).update(quarantined=F("quarantined") + 1)
    log.record(Act.QUARANTINE, conversation_id=conversation_id, target=target)
    return held


def release(held: Quarantine, *, log: AuditLog) -> None:
    """End a quarantine, so that the item can be read again; keep the row as a record."""
    Quarantine.objects.filter(pk=held.pk).update(released_at=timezone.now())
    Conversation.objects.filter(pk=held.conversation_id).update(quarantined=F("quarantined") - 1)
    log.record(Act.RELEASE, conversation_id=held.conversation_id, target=held.target)


def _open_quarantine(target: str) -> Quarantine | None:
    return Quarantine.objects.filter(target=target, released_at__isnull=True).first()

"""List, add and release quarantines: damaged items that no model is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.db import transaction

from conversations.audit import AuditLog
from conversations.errors import Conflict, Invalid, NotFound
from conversations.models import MessagePart, Quarantine
from conversations.scope import EVERYTHING, Scope
from integrity.repairs.operations.withhold import quarantine, release
from integrity.types import QuarantineRecord

_ID = re.compile(r"(?P<kind>msg|sum|part|file)_[0-9A-Za-z_-]{1,100}")


@dataclass(frozen=True)
class Quarantines:
    """The quarantines of one workspace or, for the operator, of all."""

    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Quarantines:
        return cls(scope=scope)

    def list_quarantines(
        self,
        *,
        conversation_id: int | None = None,
        released: bool = False,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[QuarantineRecord]:
        """List open quarantines, newest first; `released` includes released ones.

        NotFound if the conversation does not exist.
        """
        rows = self.scope.narrow(Quarantine.objects.order_by("-quarantine_id"))
        if conversation_id is not None:
            self.scope.conversation(conversation_id)
            rows = rows.filter(conversation_id=conversation_id)
        if not released:
            rows = rows.filter(released_at__isnull=True)
        if before_id is not None:
            rows = rows.filter(pk__lt=before_id)
        return [_record(row) for row in rows[:limit]]

    @transaction.atomic
    def quarantine(self, *, id: str, reason: str) -> QuarantineRecord:
        """Withhold a message, summary, part or file from every model; its row stays.

        Raises NotFound, Invalid for another kind of id, and Conflict if it is quarantined already.
        """
        conversation_id = self._conversation_of(id)
        self.scope.conversation(conversation_id, locked=True)
        if Quarantine.objects.filter(target=id, released_at__isnull=True).exists():
            raise Conflict(f"{id} is quarantined already.", code="quarantined")
        held = quarantine(conversation_id, id, reason=reason, log=AuditLog(self.scope))
        held.refresh_from_db()
        return _record(held)

    @transaction.atomic
    def release(self, *, quarantine_id: int) -> QuarantineRecord:
        """Release a quarantine, and show its target again.

        Raises NotFound, and Conflict if released already.
        """
        rows = self.scope.narrow(Quarantine.objects.all())
        held = rows.filter(pk=quarantine_id).first()
        if held is None:
            raise NotFound(f"There is no quarantine {quarantine_id} that you may see.")
        self.scope.conversation(held.conversation_id, locked=True)
        held.refresh_from_db()
        if held.released_at is not None:
            raise Conflict(f"{held.target} was released already.", code="released")
        release(held, log=AuditLog(self.scope))
        held.refresh_from_db()
        return _record(held)

    def _conversation_of(self, id: str) -> int:
        found = _ID.fullmatch(id)
        if found is None:
            raise Invalid(f"{id[:80]!r} is not the id of a message, summary, part or file.")
        match found["kind"]:
            case "msg" if (number := id.removeprefix("msg_")).isdecimal():
                return self.scope.message(int(number)).conversation_id
            case "sum":
                return self.scope.summary(id).conversation_id
            case "file":
                return self.scope.file(id).conversation_id
            case "part":
                part = MessagePart.objects.select_related("message").filter(pk=id).first()
                if part is not None:
                    return self.scope.message(part.message_id).conversation_id
        raise NotFound(f"There is no {id[:80]!r} that you may see.")


def _record(row: Quarantine) -> QuarantineRecord:
    return QuarantineRecord(
        quarantine_id=row.quarantine_id,
        conversation_id=row.conversation_id,
        target=row.target,
        reason=row.reason,
        created_at=row.created_at,
        released_at=row.released_at,
    )

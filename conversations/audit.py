"""Record administrative operations in the append-only audit log, and list them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import transaction

from conversations.content.lossless_values import is_storable
from conversations.models import AuditEntry
from conversations.scope import Scoped
from conversations.types import AuditRecord


class Act(StrEnum):
    """Operations recorded in the audit log; only the first four change stored texts."""

    ARCHIVE = "archive"
    THAW = "thaw"
    ERASE = "erase"
    RESTORE = "restore"
    PREVIEW_ERASURE = "preview_erasure"
    SET_RETENTION = "set_retention"
    APPROVE_REPAIR = "approve_repair"
    APPLY_REPAIR = "apply_repair"
    UNDO_REPAIR = "undo_repair"
    QUARANTINE = "quarantine"
    RELEASE = "release"
    READ_QUARANTINED = "read_quarantined"
    IMPORT_LEDGER = "import_ledger"
    CHANGE_CONVERSATION = "change_conversation"
    MOVE_HEAD = "move_head"
    FORK = "fork"
    BEGIN_EXPORT = "begin_export"
    EXPORT_LEDGER = "export_ledger"
    ANCHOR = "anchor"
    REBUILD = "rebuild"
    CREATE_WORKSPACE = "create_workspace"
    ISSUE_KEY = "issue_key"
    REVOKE_KEY = "revoke_key"
    SET_ROLE = "set_role"
    REMOVE_MEMBER = "remove_member"
    RESET_PASSWORD = "reset_password"
    RESET_ENDPOINT = "reset_endpoint"
    BACKUP = "backup"
    RESTORE_BACKUP = "restore_backup"


@dataclass(frozen=True)
class AuditLog(Scoped):
    """Records administrative operations, and lists them."""

    def record(
        self,
        act: Act,
        *,
        workspace_id: int | None = None,
        conversation_id: int | None = None,
        target: str = "",
        detail: Mapping[str, Any] | None = None,
    ) -> AuditEntry:
        """Write an audit entry, in the transaction that carries out the operation.

        Raises RuntimeError outside a transaction. `detail` holds ids, counts and hashes, never message text.
        """
        if not transaction.get_connection().in_atomic_block:
            raise RuntimeError("An act is written down in the transaction that carries it out.")
        return AuditEntry.objects.create(
            workspace_id=self.scope.workspace_id if workspace_id is None else workspace_id,
            conversation_id=conversation_id,
            actor=self.scope.actor,
            act=act,
            target=target,
            detail=dict(detail or {}),
        )

    def list_acts(
        self,
        *,
        conversation_id: int | None = None,
        act: Act | None = None,
        target: str | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[AuditRecord]:
        """List audit entries, newest first. Filter by conversation, kind or target.

        An entry records one administrative operation. `target` is what it was applied to, such as msg_12, repair_... or
        key 7. Raises NotFound if there is no such conversation.
        """
        entries = self.scope.filter_rows(
            AuditEntry.objects.order_by("-audit_id"),
            conversation_id=conversation_id,
            act=act,
            target=target,
            audit_id__lt=before_id,
        )
        if target is not None and not is_storable(target):
            return []
        return [entry.as_record() for entry in entries[:limit]]

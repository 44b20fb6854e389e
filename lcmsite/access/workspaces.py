"""List and create workspaces."""

from __future__ import annotations

from django.db import transaction

from conversations.audit import Act, AuditLog
from conversations.content.lossless_values import require_names
from conversations.errors import Conflict, Invalid
from conversations.models import Workspace
from conversations.models.columns import record_of
from conversations.scope import Scope
from lcmsite.types import WorkspaceRecord


@transaction.atomic
def create(scope: Scope, *, name: str) -> WorkspaceRecord:
    """Create a workspace; Conflict if the name is taken, Invalid if it is unusable."""
    checked_workspace(name)
    if "/" in name or name in (".", ".."):
        # The name is a segment of the paths of pages.
        raise Invalid("A workspace's name must not contain a slash, and must not consist of dots only.")
    row, is_new = Workspace.objects.get_or_create(name=name)
    if not is_new:
        raise Conflict(f"There is already a workspace {name!r}; choose another name.")
    AuditLog(scope).record(Act.CREATE_WORKSPACE, workspace_id=row.pk, target=name)
    row.refresh_from_db()
    return record_of(WorkspaceRecord, row)


def list_all() -> list[WorkspaceRecord]:
    """All workspaces, oldest first."""
    return [record_of(WorkspaceRecord, row) for row in Workspace.objects.order_by("workspace_id")]


def checked_workspace(name: str) -> str:
    """Return the name; raise Invalid if a workspace cannot have it."""
    require_names(**{"A workspace's name": name})
    return name

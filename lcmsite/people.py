"""People: who they are in which workspace, and how they are let in, changed and put out."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.db import transaction

from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Invalid, NotFound
from conversations.models import Workspace
from conversations.scope import Scope
from lcmsite.adapters.keys import Caller
from lcmsite.models import Membership
from lcmsite.types import KeyScope, MemberRecord, NewPassword, Role

PASSWORD_BYTES = 12


def workspaces_of(user: Any) -> list[tuple[Workspace, Role]]:
    """The workspaces a person is in, by name, with what they are there."""
    if not user.is_active:
        return []
    if user.is_superuser:
        return [(workspace, Role.ADMIN) for workspace in Workspace.objects.order_by("name")]
    rows = Membership.objects.filter(user=user).select_related("workspace").order_by("workspace__name")
    return [(row.workspace, Role(row.role)) for row in rows]


def caller_in(user: Any, workspace: Workspace, role: Role) -> Caller:
    """What a person may do and see there, as everybody who asks: the same rule as for keys."""
    return Caller(
        scope=Scope(workspace.pk, actor=f"user {user.get_username()}"), key_scopes=frozenset({KeyScope(role.scope)})
    )


@transaction.atomic
def add(scope: Scope, *, username: str, role: Role, password: str | None = None) -> NewPassword:
    """A new person in the workspace, with a password that is made unless given; shown this once.

    Raises Conflict if the name is taken, Invalid for one that cannot be.
    """
    users = get_user_model()
    if not username.isprintable() or not 1 <= len(username) <= 150 or " " in username:
        raise Invalid("A user's name is 1 to 150 printable characters without blanks.")
    if users.objects.filter(username=username).exists():
        raise Conflict(f"There is a user {username[:80]!r} already; `lcm user role` gives them a role here.")
    shown = password or secrets.token_urlsafe(PASSWORD_BYTES)
    user = users.objects.create_user(username=username, password=shown)
    _place(scope, user, role)
    return NewPassword(username=username, password=shown)


@transaction.atomic
def set_role(scope: Scope, *, username: str, role: Role) -> MemberRecord:
    """Make a person who is there already this in the workspace, whatever they were in it; NotFound for a stranger."""
    return _place(scope, _user(username), role)


@transaction.atomic
def remove(scope: Scope, *, username: str) -> None:
    """Put a person out of the workspace; NotFound for one who is not in it."""
    gone, _ = Membership.objects.filter(user=_user(username), workspace_id=scope.workspace_id).delete()
    if not gone:
        raise NotFound(f"There is no user {username[:80]!r} in this workspace.")
    AuditLog(scope).record(Act.REMOVE_MEMBER, target=username)


@transaction.atomic
def reset_password(scope: Scope, *, username: str) -> NewPassword:
    """A new password for a person, shown this once; their sessions end.

    For the operator at the machine: the person may be in other workspaces, whose admins have a say in it, too.
    """
    user = _user(username)
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    user.set_password(password)
    user.save(update_fields=["password"])
    AuditLog(scope).record(Act.RESET_PASSWORD, target=username)
    return NewPassword(username=username, password=password)


def members(scope: Scope) -> list[MemberRecord]:
    """The people of the workspace, by name."""
    rows = Membership.objects.filter(workspace_id=scope.workspace_id).select_related("user", "workspace")
    return [row.as_record() for row in rows.order_by("user__username")]


def _place(scope: Scope, user: AbstractUser, role: Role) -> MemberRecord:
    membership, _ = Membership.objects.update_or_create(
        user=user, workspace_id=scope.workspace_id, defaults={"role": role}
    )
    AuditLog(scope).record(Act.SET_ROLE, target=user.get_username(), detail={"role": role})
    return membership.as_record()


def _user(username: str) -> AbstractUser:
    found = get_user_model().objects.filter(username=username).first() if username.isprintable() else None
    if found is None:
        raise NotFound(f"There is no user {username[:80]!r}.")
    return found

"""Users of a workspace: their roles, and how they are added and removed."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Invalid, NotFound
from conversations.models import Workspace
from conversations.scope import Scope
from lcmsite.access.keys import Caller
from lcmsite.models import Membership
from lcmsite.types import KeyScope, MemberRecord, NewPassword, Role

PASSWORD_BYTES = 12


def workspaces_of(user: Any) -> list[tuple[Workspace, Role]]:
    """The workspaces a user may enter, by name, with the user's role in each."""
    if not user.is_active:
        return []
    if user.is_superuser:
        return [(workspace, Role.ADMIN) for workspace in Workspace.objects.order_by("name")]
    rows = Membership.objects.filter(user_id=user.pk).select_related("workspace").order_by("workspace__name")
    return [(row.workspace, Role(row.role)) for row in rows]


def caller_in(user: Any, workspace: Workspace, role: Role) -> Caller:
    """A `Caller` with the rights that a user's role gives in the workspace."""
    return Caller(
        scope=Scope(workspace.pk, actor=_actor(user)),
        key_scopes=frozenset({KeyScope(role.scope)}),
        is_operator=user.is_superuser,
    )


@transaction.atomic
def add(scope: Scope, *, username: str, role: Role, password: str | None = None) -> NewPassword:
    """Add a user to the workspace, with a generated password unless given.

    Raises Conflict if the name is taken, Invalid if it is unusable.
    """
    if not username.isprintable() or not 1 <= len(username) <= 150 or " " in username:
        raise Invalid("A user's name is 1 to 150 printable characters without blanks.")
    if User.objects.filter(username=username).exists():
        raise Conflict(f"There is already a user {username[:80]!r}; `lcm user role` gives them a role here.")
    shown = password or secrets.token_urlsafe(PASSWORD_BYTES)
    user = User.objects.create_user(username=username, password=shown)
    _set_membership(scope, user, role)
    return NewPassword(username=username, password=shown)


@transaction.atomic
def set_role(scope: Scope, *, username: str, role: Role) -> MemberRecord:
    """Set the role of an existing user in the workspace.

    Raises NotFound for an unknown user, Conflict if no admin would be left.
    """
    user = _user(username)
    if role is not Role.ADMIN:
        _require_another_admin(scope, user)
    return _set_membership(scope, user, role)


@transaction.atomic
def remove(scope: Scope, *, username: str) -> None:
    """Remove a user from the workspace; Conflict if no admin would be left."""
    user = _user(username)
    _require_another_admin(scope, user)
    gone, _ = Membership.objects.filter(user=user, workspace_id=_workspace(scope)).delete()
    if not gone:
        raise _not_a_member(username)
    AuditLog(scope).record(Act.REMOVE_MEMBER, target=username)


@transaction.atomic
def reset_password(scope: Scope, *, username: str) -> NewPassword:
    """Set and return a generated password for a user, and end their sessions.

    For the site administrator, not for admins of a workspace: the user may belong to other workspaces, too.
    """
    user = _user(username)
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    user.set_password(password)
    user.save(update_fields=["password"])
    AuditLog(scope).record(Act.RESET_PASSWORD, target=username)
    return NewPassword(username=username, password=password)


def list_members(scope: Scope) -> list[MemberRecord]:
    """The members of the workspace, by name."""
    rows = Membership.objects.filter(workspace_id=_workspace(scope)).select_related("user", "workspace")
    return [row.as_record() for row in rows.order_by("user__username")]


def require_member(scope: Scope, *, username: str) -> None:
    """Raise NotFound unless the user is a member of the workspace."""
    if not Membership.objects.filter(user=_user(username), workspace_id=_workspace(scope)).exists():
        raise _not_a_member(username)


def _not_a_member(username: str) -> NotFound:
    return NotFound(f"There is no user {username[:80]!r} in this workspace.")


def _require_another_admin(scope: Scope, user: User) -> None:
    """Raise Conflict if this would leave the workspace without an admin.

    The site administrator, superusers and holders of keys may: they can make another one.
    """
    kind, _, name = scope.actor.partition(" ")
    if kind != "user":
        return
    # Lock the rows until the commit: if two admins leave or remove each other at once, the second sees the change.
    admins = Membership.objects.select_for_update().filter(workspace_id=_workspace(scope), role=Role.ADMIN)
    holders = set(admins.order_by("membership_id").values_list("user_id", flat=True))
    if holders != {user.pk}:
        return
    if scope.actor == _actor(user):
        raise Conflict("You are the only admin of this workspace; first make another user an admin.", code="last_admin")
    if not User.objects.filter(username=name, is_superuser=True).exists():
        raise Conflict("This is the only admin of the workspace; first make another user an admin.", code="last_admin")


def _workspace(scope: Scope) -> int:
    """The id of the scope's workspace; raises Invalid if it has none."""
    if scope.workspace_id is None:
        raise Invalid("A user belongs to a workspace; name a workspace.")
    return scope.workspace_id


def _actor(user: Any) -> str:
    """The name of a user in the audit log."""
    return f"user {user.get_username()}"


def _set_membership(scope: Scope, user: User, role: Role) -> MemberRecord:
    membership, _ = Membership.objects.update_or_create(
        user=user, workspace_id=_workspace(scope), defaults={"role": role}
    )
    AuditLog(scope).record(Act.SET_ROLE, target=user.get_username(), detail={"role": role})
    return membership.as_record()


def _user(username: str) -> User:
    found = User.objects.filter(username=username).first() if username.isprintable() else None
    if found is None:
        raise NotFound(f"There is no user {username[:80]!r}.")
    return found

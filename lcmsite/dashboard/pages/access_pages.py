"""Access to a workspace: members, API keys, grants, and the workspaces themselves."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from conversations.errors import Forbidden, Invalid, LcmError
from lcmsite.access import keys as api_keys
from lcmsite.access import users, workspaces
from lcmsite.catalogue.problems import problem_of
from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.pager import paged
from lcmsite.types import IssuedKey, KeyScope, Role

ROLE_MEANINGS = {
    Role.READER: "may read everything",
    Role.OPERATOR: "may also compact and revoke grants",
    Role.ADMIN: "may do everything, including members",
}


@page(KeyScope.ADMIN)
def members(visit: Visit) -> HttpResponse:
    """The members and their roles."""
    return _members(visit)


@page(KeyScope.ADMIN, methods=("POST",))
def add_member(visit: Visit) -> HttpResponse:
    """Add an existing user, or a new one, whose password only this response shows."""
    given = visit.request.POST
    username = given.get("username", "").strip()
    try:
        role = _role(given.get("role", ""))
        if given.get("known"):
            users.set_role(visit.caller.scope, username=username, role=role)
            messages.success(visit.request, f"{username} is now {role}.")
            return visit.redirect("members")
        added = users.add(visit.caller.scope, username=username, role=role)
    except LcmError as refusal:
        return _members(visit, problem=refusal, username=username)
    return _members(visit, status=201, added=added)


@page(KeyScope.ADMIN, methods=("POST",))
def set_role(visit: Visit) -> HttpResponse:
    """Change the role of a member."""
    given = visit.request.POST
    try:
        username = given.get("username", "")
        users.require_member(visit.caller.scope, username=username)
        record = users.set_role(visit.caller.scope, username=username, role=_role(given.get("role", "")))
    except LcmError as refusal:
        return _members(visit, problem=refusal)
    messages.success(visit.request, f"{record.username} is now {record.role}.")
    return visit.redirect("members")


@page(KeyScope.ADMIN, methods=("POST",))
def remove_member(visit: Visit) -> HttpResponse:
    """Remove a member from this workspace; they stay in others."""
    username = visit.request.POST.get("username", "")
    try:
        users.remove(visit.caller.scope, username=username)
    except LcmError as refusal:
        return _members(visit, problem=refusal)
    messages.success(visit.request, f"{username} was removed from this workspace.")
    if username == visit.request.user.get_username():
        return redirect("home")
    return visit.redirect("members")


@page()
def all_workspaces(visit: Visit) -> HttpResponse:
    """The person's workspaces; a superuser sees all and may create more."""
    return visit.show("dashboard/workspaces.html", **_workspaces(visit))


@page(methods=("POST",))
def create_workspace(visit: Visit) -> HttpResponse:
    """Create a workspace, as a superuser."""
    if not visit.request.user.is_superuser:
        raise Forbidden("Only a superuser may create workspaces, or the operator with `lcm workspace create`.")
    name = visit.request.POST.get("name", "").strip()
    try:
        made = workspaces.create(visit.caller.scope, name=name)
    except LcmError as refusal:
        return visit.show("dashboard/workspaces.html", refusal=problem_of(refusal), name=name, **_workspaces(visit))
    messages.success(visit.request, f"The workspace “{made.name}” was created.")
    return visit.redirect("workspaces")


def _workspaces(visit: Visit) -> dict[str, Any]:
    return {"mine": users.workspaces_of(visit.request.user), "may_create": visit.request.user.is_superuser}


def _role(given: str) -> Role:
    if given not in list(Role):
        raise Invalid(f"role: choose one of {', '.join(Role)}.")
    return Role(given)


def _members(visit: Visit, status: int = 200, problem: LcmError | None = None, **context: Any) -> HttpResponse:
    return visit.show(
        "dashboard/members.html",
        status,
        members=users.members(visit.caller.scope),
        roles=[(role, ROLE_MEANINGS[role]) for role in Role],
        me=visit.request.user.get_username(),
        refusal=problem_of(problem) if problem is not None else None,
        **context,
    )


# How long a key is valid, as the form offers it; empty for no expiry.
LIVES = (("", "no expiry"), ("1", "1 day"), ("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "1 year"))
SCOPE_MEANINGS = {
    KeyScope.READ: "search, read, assemble",
    KeyScope.WRITE: "also open, append, compact",
    KeyScope.ADMIN: "everything, including other keys",
}


@page(KeyScope.ADMIN)
def keys(visit: Visit) -> HttpResponse:
    """All API keys of the workspace, revoked ones included."""
    return _keys(visit)


@page(KeyScope.ADMIN, methods=("POST",))
def create_key(visit: Visit) -> HttpResponse:
    """Create a key. Only this response shows it, so there is no redirect."""
    given = visit.request.POST
    try:
        issued = api_keys.issue(
            workspace_id=visit.workspace.pk,
            name=given.get("name", "").strip(),
            scopes=[given.get("scope", "")],
            expires_at=_end(given.get("days", "")),
            by=visit.caller.scope,
        )
    except LcmError as refusal:
        return _keys(visit, refusal=problem_of(refusal), name=given.get("name", ""))
    return _keys(visit, status=201, issued=issued)


@page(KeyScope.ADMIN, methods=("POST",))
def revoke_key(visit: Visit, api_key_id: int) -> HttpResponse:
    """Revoke a key for good."""
    record = api_keys.revoke(visit.caller.scope, key=str(api_key_id))
    messages.success(visit.request, f"The key “{record.name}” was revoked.")
    return visit.redirect("keys")


def _end(days: str) -> datetime | None:
    """When a key expires; Invalid for a number of days that the form does not offer."""
    if days not in dict(LIVES):
        raise Invalid("days: choose one of the offered values.")
    return timezone.now() + timedelta(days=int(days)) if days else None


def _keys(visit: Visit, status: int = 200, issued: IssuedKey | None = None, **context: Any) -> HttpResponse:
    found = reversed(api_keys.list_keys(visit.caller.scope))
    now = timezone.now()
    rows = [
        {
            "key": key,
            "state": "revoked"
            if key.revoked_at
            else "expired"
            if key.expires_at and key.expires_at <= now
            else "active",
        }
        for key in found
    ]
    scopes = [(scope, SCOPE_MEANINGS[scope]) for scope in KeyScope]
    return visit.show("dashboard/keys.html", status, keys=rows, scopes=scopes, lives=LIVES, issued=issued, **context)


GRANTS_ON_A_PAGE = 50


@page()
def grants(visit: Visit) -> HttpResponse:
    """The grants of the workspace, newest first, with their use."""
    before = visit.request.GET.get("before") or None
    found = visit.ask("lcm_grants", before_grant=before, limit=GRANTS_ON_A_PAGE + 1)
    return visit.show(
        "dashboard/grants.html",
        paged=paged(found, most=GRANTS_ON_A_PAGE, key="grant_id", before=before),
        may_revoke=visit.may("lcm_revoke_grant"),
    )


@page(KeyScope.WRITE, methods=("POST",))
def revoke_grant(visit: Visit, grant_id: str) -> HttpResponse:
    """Revoke a grant."""
    grant = visit.ask("lcm_revoke_grant", grant_id=grant_id)
    messages.success(visit.request, f"{grant.grant_id} was revoked.")
    return visit.redirect("grants")

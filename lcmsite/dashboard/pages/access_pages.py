"""Pages of members, API keys, grants and workspaces."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.views import PasswordChangeView
from django.contrib.messages.views import SuccessMessageMixin
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from conversations.errors import Forbidden, Invalid
from lcmsite.access import keys as api_keys
from lcmsite.access import users, workspaces
from lcmsite.catalogue.problems import Problem
from lcmsite.dashboard.visit import POST, Visit, page, text_in
from lcmsite.types import KeyScope, Role

ROLE_MEANINGS = {
    Role.READER: "may read everything",
    Role.OPERATOR: "may also compact and revoke grants",
    Role.ADMIN: "may do everything, including members",
}
SCOPE_MEANINGS = {
    KeyScope.READ: "search, read, assemble",
    KeyScope.WRITE: "also open, append, compact",
    KeyScope.ADMIN: "everything, including other keys",
}
# The lifetimes of keys that the form offers: the number of days (empty for no expiry) and its label.
LIVES = (("", "no expiry"), ("1", "1 day"), ("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "1 year"))


class PasswordChange(SuccessMessageMixin, PasswordChangeView):
    """The page to change the user's own password."""

    success_message = "Your password was changed."


def _show_members(visit: Visit, problem: Problem | None = None, status: int = 200, **context: Any) -> HttpResponse:
    return visit.show(
        "members.html",
        status,
        members=users.list_members(visit.caller.scope),
        roles=list(ROLE_MEANINGS.items()),
        me=visit.request.user.get_username(),
        refusal=problem,
        **context,
    )


def _show_not_added(visit: Visit, problem: Problem) -> HttpResponse:
    return _show_members(visit, problem, username=text_in(visit.request.POST, "username"))


@page(KeyScope.ADMIN)
def members(visit: Visit) -> HttpResponse:
    return _show_members(visit)


@page(KeyScope.ADMIN, POST, on_refusal=_show_not_added)
def add_member(visit: Visit) -> HttpResponse:
    """Add an existing user, or create one; only this response shows the password."""
    username = text_in(visit.request.POST, "username")
    role = _role_in(visit)
    if visit.request.POST.get("known"):
        users.set_role(visit.caller.scope, username=username, role=role)
        return visit.redirect("members", done=f"{username} is now {role}.")
    return _show_members(visit, status=201, added=users.add(visit.caller.scope, username=username, role=role))


@page(KeyScope.ADMIN, POST, on_refusal=_show_members)
def set_role(visit: Visit) -> HttpResponse:
    username = visit.request.POST.get("username", "")
    users.require_member(visit.caller.scope, username=username)
    record = users.set_role(visit.caller.scope, username=username, role=_role_in(visit))
    return visit.redirect("members", done=f"{record.username} is now {record.role}.")


@page(KeyScope.ADMIN, POST, on_refusal=_show_members)
def remove_member(visit: Visit) -> HttpResponse:
    """Remove a member from this workspace; they stay in others."""
    username = visit.request.POST.get("username", "")
    users.remove(visit.caller.scope, username=username)
    answer = visit.redirect("members", done=f"{username} was removed from this workspace.")
    return redirect("home") if username == visit.request.user.get_username() else answer


def _role_in(visit: Visit) -> Role:
    given = visit.request.POST.get("role", "")
    if given not in list(Role):
        raise Invalid(f"role: choose one of {', '.join(Role)}.")
    return Role(given)


def _show_workspaces(visit: Visit, problem: Problem | None = None) -> HttpResponse:
    return visit.show(
        "workspaces.html",
        refusal=problem,
        name=text_in(visit.request.POST, "name"),
        mine=users.workspaces_of(visit.request.user),
    )


@page()
def all_workspaces(visit: Visit) -> HttpResponse:
    """The user's workspaces; a superuser sees all and may create more."""
    return _show_workspaces(visit)


@page(methods=POST, on_refusal=_show_workspaces)
def create_workspace(visit: Visit) -> HttpResponse:
    if not visit.caller.is_operator:
        raise Forbidden("Only a superuser may create workspaces, or the site administrator: `lcm workspace create`.")
    made = workspaces.create(visit.caller.scope, name=text_in(visit.request.POST, "name"))
    return visit.redirect("workspaces", done=f"The workspace “{made.name}” was created.")


def _show_keys(visit: Visit, problem: Problem | None = None, status: int = 200, **context: Any) -> HttpResponse:
    return visit.show(
        "keys.html",
        status,
        refusal=problem,
        keys=api_keys.list_keys(visit.caller.scope)[::-1],
        scopes=list(SCOPE_MEANINGS.items()),
        lives=LIVES,
        name=visit.request.POST.get("name", "") if problem else "",
        **context,
    )


@page(KeyScope.ADMIN)
def keys(visit: Visit) -> HttpResponse:
    """All API keys of the workspace, revoked ones included."""
    return _show_keys(visit)


@page(KeyScope.ADMIN, POST, on_refusal=_show_keys)
def create_key(visit: Visit) -> HttpResponse:
    """Create a key. Only this response shows it, so there is no redirect."""
    given = visit.request.POST
    issued = api_keys.issue(
        workspace_id=visit.workspace.pk,
        name=text_in(given, "name"),
        scopes=[given.get("scope", "")],
        expires_at=_expiry(given.get("days", "")),
        by=visit.caller.scope,
    )
    return _show_keys(visit, status=201, issued=issued)


@page(KeyScope.ADMIN, POST)
def revoke_key(visit: Visit, api_key_id: int) -> HttpResponse:
    record = api_keys.revoke(visit.caller.scope, key=str(api_key_id))
    return visit.redirect("keys", done=f"The key “{record.name}” was revoked.")


def _expiry(days: str) -> datetime | None:
    """The expiry of a key; raises Invalid for days that the form does not offer."""
    if days not in dict(LIVES):
        raise Invalid("days: choose one of the offered values.")
    return timezone.now() + timedelta(days=int(days)) if days else None


@page()
def grants(visit: Visit) -> HttpResponse:
    """The grants of the workspace, newest first, and how much each was used."""
    return visit.show("grants.html", paged=visit.list_page("lcm_grants"))


@page(KeyScope.WRITE, POST)
def revoke_grant(visit: Visit, grant_id: str) -> HttpResponse:
    grant = visit.call("lcm_revoke_grant", grant_id=grant_id)
    return visit.redirect("grants", done=f"{grant.grant_id} was revoked.")

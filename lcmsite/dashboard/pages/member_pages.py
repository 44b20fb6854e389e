"""The people of a workspace, and the workspaces themselves."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from conversations.errors import Forbidden, Invalid, LcmError
from lcmsite.access import users, workspaces
from lcmsite.catalogue.problems import problem_of
from lcmsite.dashboard.page import Visit, page
from lcmsite.types import KeyScope, Role

MEANINGS = {
    Role.READER: "sees everything",
    Role.OPERATOR: "also compacts, revokes grants",
    Role.ADMIN: "everything, people too",
}


@page(KeyScope.ADMIN)
def members(visit: Visit) -> HttpResponse:
    """Who is in, and as what."""
    return _shown(visit)


@page(KeyScope.ADMIN, methods=("POST",))
def add(visit: Visit) -> HttpResponse:
    """Let somebody in: a new person, whose password is in this answer and nowhere else, or one who has a name here."""
    given = visit.request.POST
    username = given.get("username", "").strip()
    try:
        role = _role(given.get("role", ""))
        if given.get("known"):
            users.set_role(visit.caller.scope, username=username, role=role)
            messages.success(visit.request, f"{username} is {role} here.")
            return redirect("members", workspace=visit.workspace.name)
        added = users.add(visit.caller.scope, username=username, role=role)
    except LcmError as refusal:
        return _shown(visit, problem=refusal, username=username)
    return _shown(visit, status=201, added=added)


@page(KeyScope.ADMIN, methods=("POST",))
def set_role(visit: Visit) -> HttpResponse:
    """Make a member something else; whoever is none is let in by `add`."""
    given = visit.request.POST
    try:
        username = given.get("username", "")
        users.require_member(visit.caller.scope, username=username)
        record = users.set_role(visit.caller.scope, username=username, role=_role(given.get("role", "")))
    except LcmError as refusal:
        return _shown(visit, problem=refusal)
    messages.success(visit.request, f"{record.username} is {record.role} here.")
    return redirect("members", workspace=visit.workspace.name)


@page(KeyScope.ADMIN, methods=("POST",))
def remove(visit: Visit) -> HttpResponse:
    """Put somebody out of this workspace; in others they stay."""
    username = visit.request.POST.get("username", "")
    try:
        users.remove(visit.caller.scope, username=username)
    except LcmError as refusal:
        return _shown(visit, problem=refusal)
    messages.success(visit.request, f"{username} is not in this workspace any more.")
    if username == visit.request.user.get_username():
        return redirect("home")
    return redirect("members", workspace=visit.workspace.name)


@page()
def all_workspaces(visit: Visit) -> HttpResponse:
    """Those that the person is in; for a superuser these are all, and they may make more."""
    return visit.show("dashboard/workspaces.html", **_workspaces(visit))


@page(methods=("POST",))
def create_workspace(visit: Visit) -> HttpResponse:
    """A new one, by a superuser."""
    if not visit.request.user.is_superuser:
        raise Forbidden("Only a superuser makes workspaces; so does `lcm workspace create` at the machine.")
    name = visit.request.POST.get("name", "").strip()
    try:
        made = workspaces.create(visit.caller.scope, name=name)
    except LcmError as refusal:
        problem = problem_of(refusal)
        return visit.show("dashboard/workspaces.html", problem.status, problem=problem, name=name, **_workspaces(visit))
    messages.success(visit.request, f"The workspace “{made.name}” is there, empty.")
    return redirect("workspaces", workspace=visit.workspace.name)


def _workspaces(visit: Visit) -> dict[str, Any]:
    return {"mine": users.workspaces_of(visit.request.user), "may_create": visit.request.user.is_superuser}


def _role(given: str) -> Role:
    if given not in list(Role):
        raise Invalid(f"A role is one of {', '.join(Role)}.")
    return Role(given)


def _shown(visit: Visit, status: int = 200, problem: LcmError | None = None, **context: Any) -> HttpResponse:
    told = problem_of(problem) if problem is not None else None
    return visit.show(
        "dashboard/members.html",
        told.status if told is not None else status,
        members=users.members(visit.caller.scope),
        roles=[(role, MEANINGS[role]) for role in Role],
        me=visit.request.user.get_username(),
        problem=told,
        **context,
    )

"""API keys of the workspace: made, shown once, taken back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from conversations.errors import Invalid, LcmError
from lcmsite.access import keys as api_keys
from lcmsite.catalogue.problems import problem_of
from lcmsite.dashboard.page import Visit, page
from lcmsite.types import IssuedKey, KeyScope

# How long a key may live, as the form offers it; nothing for one without an end.
LIVES = (("", "for good"), ("1", "1 day"), ("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "1 year"))
MEANINGS = {
    KeyScope.READ: "search, read, assemble",
    KeyScope.WRITE: "also open, append, compact",
    KeyScope.ADMIN: "everything, other keys included",
}


@page(KeyScope.ADMIN)
def keys(visit: Visit) -> HttpResponse:
    """All of them, those taken back too."""
    return _shown(visit)


@page(KeyScope.ADMIN, methods=("POST",))
def create(visit: Visit) -> HttpResponse:
    """A new one. Its text is in this answer and nowhere else, so it is no redirect."""
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
        problem = problem_of(refusal)
        return _shown(visit, status=problem.status, problem=problem, name=given.get("name", ""))
    return _shown(visit, status=201, issued=issued)


@page(KeyScope.ADMIN, methods=("POST",))
def revoke(visit: Visit, api_key_id: int) -> HttpResponse:
    """Take one back, for good."""
    record = api_keys.revoke(visit.caller.scope, key=str(api_key_id))
    messages.success(visit.request, f"The key “{record.name}” opens nothing any more.")
    return redirect("keys", workspace=visit.workspace.name)


def _end(days: str) -> datetime | None:
    """When a key of so many days ends; Invalid for a life that is not offered."""
    if days not in dict(LIVES):
        raise Invalid("How long a key holds is chosen from the list.")
    return timezone.now() + timedelta(days=int(days)) if days else None


def _shown(visit: Visit, status: int = 200, issued: IssuedKey | None = None, **context: Any) -> HttpResponse:
    found = reversed(api_keys.list_keys(visit.caller.scope))
    now = timezone.now()
    told = [
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
    scopes = [(scope, MEANINGS[scope]) for scope in KeyScope]
    return visit.show("dashboard/keys.html", status, keys=told, scopes=scopes, lives=LIVES, issued=issued, **context)

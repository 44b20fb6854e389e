"""Leave to read that was given to sub-agents: what it allows, what was read by it, and its end."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from lcmsite.dashboard.asking import ask, may
from lcmsite.dashboard.pages import Visit, page
from lcmsite.types import KeyScope

MOST = 100


@page()
def grants(visit: Visit) -> HttpResponse:
    """The newest grants, with how much of each is used up."""
    found = ask(visit.caller, "lcm_grants", limit=MOST)
    return visit.show(
        "dashboard/grants.html", grants=found, most=MOST, may_revoke=may(visit.caller, "lcm_revoke_grant")
    )


@page(KeyScope.WRITE, methods=("POST",))
def revoke(visit: Visit, grant_id: str) -> HttpResponse:
    """Take one back."""
    grant = ask(visit.caller, "lcm_revoke_grant", grant_id=grant_id)
    messages.success(visit.request, f"Nothing more is read by {grant.grant_id}.")
    return redirect("grants", workspace=visit.workspace.name)

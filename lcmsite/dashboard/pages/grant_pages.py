"""Leave to read that was given to sub-agents: what it allows, what was read by it, and its end."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.pager import paged
from lcmsite.dashboard.service import ask, may
from lcmsite.types import KeyScope

ON_A_PAGE = 50


@page()
def grants(visit: Visit) -> HttpResponse:
    """The newest grants, or those behind one, with how much of each is used up."""
    before = visit.request.GET.get("before") or None
    found = ask(visit.caller, "lcm_grants", before_grant=before, limit=ON_A_PAGE + 1)
    return visit.show(
        "dashboard/grants.html",
        paged=paged(found, most=ON_A_PAGE, key="grant_id", before=before),
        may_revoke=may(visit.caller, "lcm_revoke_grant"),
    )


@page(KeyScope.WRITE, methods=("POST",))
def revoke(visit: Visit, grant_id: str) -> HttpResponse:
    """Take one back."""
    grant = ask(visit.caller, "lcm_revoke_grant", grant_id=grant_id)
    messages.success(visit.request, f"Nothing more is read by {grant.grant_id}.")
    return redirect("grants", workspace=visit.workspace.name)

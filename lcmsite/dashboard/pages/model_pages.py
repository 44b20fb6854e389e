"""The language models: whether they are asked, what they have cost, and asking one anew."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.service import ask
from lcmsite.types import KeyScope


@page(KeyScope.ADMIN, of_the_site=True)
def endpoints(visit: Visit) -> HttpResponse:
    """All models of the site; they belong to no workspace."""
    return visit.show("dashboard/models.html", models=ask(visit.caller, "lcm_models"))


@page(KeyScope.ADMIN, methods=("POST",), of_the_site=True)
def reset(visit: Visit, name: str) -> HttpResponse:
    """Let a model be asked again at once, with nothing spent in this window."""
    ask(visit.caller, "lcm_reset_model", name=name)
    messages.success(visit.request, f"{name} is asked again from now on.")
    return redirect("models", workspace=visit.workspace.name)

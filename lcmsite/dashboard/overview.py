"""Is memory healthy? One look, kept up to date."""

from __future__ import annotations

from django.http import HttpResponse

from lcmsite.dashboard.pages import Visit, page


@page()
def overview(visit: Visit) -> HttpResponse:
    return visit.show("dashboard/overview.html")


@page()
def pulse(visit: Visit) -> HttpResponse:
    """The part that moves."""
    return visit.show("dashboard/_pulse.html")

"""The overview: activity, pressure, integrity and storage."""

from __future__ import annotations

import hashlib

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from lcmsite.dashboard.parts.charting import LAYERS, chart_of
from lcmsite.dashboard.visit import Visit, page

HOURS = 24
RECENT_ACTS = 6


@page()
def overview(visit: Visit) -> HttpResponse:
    """The page; storage and audit entries are loaded afterwards."""
    return visit.show("overview.html", pulse=_pulse(visit)[0])


@page()
def pulse(visit: Visit) -> HttpResponse:
    """The part of the page that is polled; 204 if it has not changed."""
    content, mark = _pulse(visit)
    return HttpResponse(status=204) if visit.request.GET.get("seen") == mark else HttpResponse(content)


@page()
def shelf(visit: Visit) -> HttpResponse:
    """Storage by tier, and the latest audit entries."""
    return visit.show(
        "_shelf.html",
        storage=visit.call("lcm_storage"),
        acts=visit.call("lcm_audit", limit=RECENT_ACTS) if visit.may("lcm_audit") else None,
    )


def _pulse(visit: Visit) -> tuple[SafeString, str]:
    """The polled part of the page, and its hash."""
    activity = visit.call("lcm_activity", hours=HOURS)
    content = render_to_string(
        "dashboard/_pulse.html",
        {
            "visit": visit,
            "activity": activity,
            "chart": chart_of(activity.runs, since=activity.since, hours=HOURS),
            "layers": LAYERS,
            "integrity": visit.call("lcm_integrity"),
            "models": visit.call("lcm_models") if visit.may("lcm_models") else None,
        },
        visit.request,
    )
    mark = hashlib.sha256(content.encode()).hexdigest()[:16]
    return format_html('{}<input type="hidden" id="seen" name="seen" value="{}">', content, mark), mark

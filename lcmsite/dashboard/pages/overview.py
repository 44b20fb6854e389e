"""Is memory healthy? One look, kept up to date."""

from __future__ import annotations

import hashlib

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.charting import LAYERS, chart_of
from lcmsite.dashboard.service import ask, may

HOURS = 24
RECENT_ACTS = 6


@page()
def overview(visit: Visit) -> HttpResponse:
    """The page; what does not move comes into it afterwards, for it takes longer to count."""
    return visit.show("dashboard/overview.html", pulse=_pulse(visit)[0])


@page()
def pulse(visit: Visit) -> HttpResponse:
    """The part that moves; nothing, for a page that shows it as it is already."""
    content, mark = _pulse(visit)
    if visit.request.GET.get("seen") == mark:
        return HttpResponse(status=204)
    return HttpResponse(content)


@page()
def shelf(visit: Visit) -> HttpResponse:
    """What takes up room, and what was done lately by those who administrate."""
    return visit.show(
        "dashboard/_shelf.html",
        storage=ask(visit.caller, "lcm_storage"),
        acts=ask(visit.caller, "lcm_audit", limit=RECENT_ACTS) if may(visit.caller, "lcm_audit") else None,
    )


def _pulse(visit: Visit) -> tuple[SafeString, str]:
    """The moving part, and by what it is told from another."""
    activity = ask(visit.caller, "lcm_activity", hours=HOURS)
    content = render_to_string(
        "dashboard/_pulse.html",
        {
            "visit": visit,
            "activity": activity,
            "chart": chart_of(activity.runs, since=activity.since, hours=HOURS),
            "layers": LAYERS,
            "integrity": ask(visit.caller, "lcm_integrity"),
            "models": ask(visit.caller, "lcm_models") if may(visit.caller, "lcm_models") else None,
        },
        visit.request,
    )
    mark = hashlib.sha256(content.encode()).hexdigest()[:16]
    return format_html('{}<input type="hidden" id="seen" name="seen" value="{}">', content, mark), mark

"""Projects, their time lines, and what each session, arc and epoch rests on."""

from __future__ import annotations

from django.http import HttpResponse

from compaction.history.types import HistoryKind
from lcmsite.dashboard.visit import Visit, page, text_in

ENTRIES = 20
# How much of what a summary rests on is shown at first.
TOKENS_BELOW = 6_000


@page()
def projects(visit: Visit) -> HttpResponse:
    """The projects of the workspace by name."""
    return visit.show("history/projects.html", paged=visit.list_page("lcm_projects"))


@page()
def project(visit: Visit) -> HttpResponse:
    """The time line of a project, or of the whole workspace, newest first."""
    name = text_in(visit.request.GET, "project") or None
    kind = next((each for each in HistoryKind if each == visit.request.GET.get("kind")), None)
    return visit.show(
        "history/timeline.html",
        project=name,
        kind=kind,
        kinds=list(HistoryKind),
        paged=visit.list_page(
            "lcm_timeline", limit=ENTRIES, filters={"project": name, "kind": kind}, project=name, kind=kind
        ),
    )


@page()
def rests_on(visit: Visit, summary_id: str) -> HttpResponse:
    """What a session, arc or epoch summary rests on, one level down."""
    expansion = visit.ask(
        "lcm_expand_session",
        summary_id=summary_id,
        token_cap=TOKENS_BELOW,
        cursor=visit.request.GET.get("cursor"),
    )
    return visit.show("history/_rests_on.html", expansion=expansion)

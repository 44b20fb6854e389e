"""Projects, their time lines, and the summaries of sessions, arcs and epochs."""

from __future__ import annotations

from django.http import HttpResponse

from compaction.history.types import HistoryKind
from lcmsite.dashboard.visit import POST, Visit, page, text_in
from lcmsite.types import KeyScope

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
def session_summary(visit: Visit, summary_id: str) -> HttpResponse:
    """A session, arc or epoch summary with its place among the others."""
    return visit.show("history/summary.html", described=visit.ask("lcm_describe", id=summary_id))


@page(KeyScope.WRITE, POST)
def redo_session(visit: Visit, summary_id: str) -> HttpResponse:
    """Have a degraded or damaged summary made again by a worker."""
    visit.ask("lcm_redo_session", summary_id=summary_id, background=True)
    return visit.redirect("history-jobs", done="Requested.")


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

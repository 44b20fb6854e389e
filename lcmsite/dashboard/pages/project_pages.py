"""Pages of projects, their timelines, and session, arc and epoch summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse

from compaction.history.types import HistoryKind
from conversations.errors import Invalid
from lcmsite.catalogue.problems import problem_of
from lcmsite.dashboard.visit import POST, ListPage, Visit, choices_in, page, text_in
from lcmsite.types import KeyScope
from retrieval.history.types import SessionMatches, TimelineEntry

ENTRIES = 20
# Maximum number of tokens of a summary's sources on one page.
TOKENS_BELOW = 6_000


@page()
def projects(visit: Visit) -> HttpResponse:
    return visit.show("history/projects.html", paged=visit.list_page("lcm_projects"))


@page()
def project(visit: Visit) -> HttpResponse:
    """The timeline of a project, or of the whole workspace, newest first.

    With a query, the matching summaries instead, best match first.
    """
    given = visit.request.GET
    filters: dict[str, Any] = {"project": text_in(given, "project") or None, **choices_in(given, kind=HistoryKind)}
    if query := text_in(given, "query"):
        found = _find_matches(visit, {name: value for name, value in filters.items() if value} | {"query": query})
        return visit.show(
            "history/timeline.html", filters={**filters, "query": query}, kinds=list(HistoryKind), **found
        )
    paged = visit.list_page("lcm_timeline", limit=ENTRIES, filters=filters, fitting=_count_with_texts, **filters)
    return visit.show("history/timeline.html", filters=filters, kinds=list(HistoryKind), paged=paged)


@page()
def session_summary(visit: Visit, summary_id: str) -> HttpResponse:
    """A session, arc or epoch summary with its position among the others."""
    return visit.show("history/summary.html", described=visit.call("lcm_describe", id=summary_id))


@page(KeyScope.WRITE, POST)
def redo_session(visit: Visit, summary_id: str) -> HttpResponse:
    """Queue a degraded or damaged summary to be regenerated."""
    visit.call("lcm_redo_session", summary_id=summary_id, background=True)
    return visit.redirect("history-jobs", done="Requested.")


@page()
def rests_on(visit: Visit, summary_id: str) -> HttpResponse:
    """The direct sources of a session, arc or epoch summary, as a page or a part."""
    expansion = visit.call(
        "lcm_expand_session",
        summary_id=summary_id,
        token_cap=TOKENS_BELOW,
        cursor=visit.request.GET.get("cursor"),
    )
    return visit.show("history/_rests_on.html" if visit.is_part else "history/rests_on.html", expansion=expansion)


def _find_matches(visit: Visit, filters: dict[str, Any]) -> dict[str, Any]:
    """A page of matches; or, if the query is invalid, the problem to show."""
    cursor = visit.request.GET.get("cursor") or None
    try:
        found: SessionMatches = visit.call("lcm_grep_sessions", in_text=filters, limit=ENTRIES, cursor=cursor)
    except Invalid as refusal:
        return {"problem": problem_of(refusal)}
    older = urlencode({**filters, "cursor": found.next_cursor}) if found.next_cursor else None
    newest = None if cursor is None else urlencode(filters)
    return {"found": found, "paged": ListPage(rows=found.matches, newest=newest, older=older)}


def _count_with_texts(entries: Sequence[TimelineEntry]) -> int:
    """How many entries fit on the page with their texts; at least one."""
    has_no_room = (each.id and each.content is None and not each.erased and not each.quarantined for each in entries)
    return max(1, next((place for place, is_bare in enumerate(has_no_room) if is_bare), len(entries)))

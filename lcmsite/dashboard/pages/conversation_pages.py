"""The conversations of a workspace, and one of them, readable."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.addresses import number_in
from lcmsite.dashboard.parts.transcript_parts import turns
from lcmsite.dashboard.service import ask, may
from lcmsite.types import KeyScope
from retrieval.describing.browsing import BrowseSort
from retrieval.types import MessageSpan

ON_A_PAGE = 40
# What is asked for is shown with a little of what came before it.
BEFORE = 4


@page()
def conversations(visit: Visit) -> HttpResponse:
    """All of them, a page at a time; a search replaces the list alone."""
    given = visit.request.GET
    sort = given.get("sort", BrowseSort.UPDATED)
    found = ask(
        visit.caller,
        "lcm_browse",
        query=given.get("q", "").strip() or None,
        sort=sort if sort in list(BrowseSort) else None,
        page=number_in(given, "page"),
    )
    last = max(1, -(-found.total // found.limit))
    template = "dashboard/_conversations.html" if visit.is_part else "dashboard/conversations.html"
    return visit.show(
        template,
        found=found,
        last=last,
        query=given.get("q", ""),
        sort=sort,
        sorts=list(BrowseSort),
        may_import=may(visit.caller, "lcm_append"),
    )


@page()
def transcript(visit: Visit, conversation_id: int) -> HttpResponse:
    """The messages, as they were said, from one on."""
    asked = number_in(visit.request.GET, "seq")
    shown = _messages(visit, conversation_id, None if asked is None else max(1, asked - BEFORE))
    return visit.show("dashboard/transcript.html", may_compact=may(visit.caller, "lcm_compact"), asked=asked, **shown)


@page()
def more(visit: Visit, conversation_id: int) -> HttpResponse:
    """The messages from one on, or those right before one, to be put in behind or before those that are shown."""
    given = visit.request.GET
    before = number_in(given, "before")
    if before is None:
        shown = _messages(visit, conversation_id, number_in(given, "seq") or 1)
        return visit.show("dashboard/_messages.html", **{**shown, "earlier": None})
    shown = _messages(visit, conversation_id, max(1, before - ON_A_PAGE), last=before - 1)
    # Those that follow are on the page already, unless this page had to end early.
    return visit.show("dashboard/_messages.html", **{**shown, "later": shown["later"] if shown["is_cut"] else None})


@page()
def message(visit: Visit, message_id: str) -> HttpResponse:
    """One message, all of it, however long it is: what became a file is put back."""
    said = ask(visit.caller, "lcm_message", message_id=message_id, whole=True)
    shown = [{"turn": turn} for turn in turns([said], most=None)]
    return visit.show("dashboard/message.html", message=said, turns=shown, is_whole=True)


@page(KeyScope.WRITE, methods=("POST",))
def compact(visit: Visit, conversation_id: int) -> HttpResponse:
    """Have a worker make room; how it goes is told by `job`."""
    job = ask(visit.caller, "lcm_compact", conversation_id=conversation_id, background=True)
    if visit.is_part:
        return visit.show("dashboard/_job.html", job=job, conversation_id=conversation_id)
    messages.success(visit.request, f"Job {job.job_id} will make room.")
    return redirect("transcript", workspace=visit.workspace.name, conversation_id=conversation_id)


@page()
def job(visit: Visit, conversation_id: int, job_id: int) -> HttpResponse:
    """How a job goes, until it is over."""
    return visit.show(
        "dashboard/_job.html", job=ask(visit.caller, "lcm_job", job_id=job_id), conversation_id=conversation_id
    )


def _messages(visit: Visit, conversation_id: int, first: int | None, last: int | None = None) -> dict[str, Any]:
    """A page of messages from this one on, to that one at most, with what a model sees of each; else the newest."""
    # At this resolution it tells what a model sees, and little else.
    window = ask(visit.caller, "lcm_lineage_window", conversation_id=conversation_id, with_messages=False, resolution=1)
    count = window.message_count
    first = max(1, count - ON_A_PAGE + 1) if first is None else first
    last = min(count, first + ON_A_PAGE - 1 if last is None else last)
    said = (
        ask(visit.caller, "lcm_messages", conversation_id=conversation_id, after_seq=first - 1, limit=last - first + 1)
        if first <= last
        else []
    )
    # A page of very large messages ends early.
    is_cut = len(said) < last - first + 1 and getattr(said, "next_cursor", None) is not None
    if is_cut:
        last = said[-1].seq
    active = [each for each in window.summaries if each.active]
    # A row that is gone leaves its place empty, so there may be messages beyond the page among them.
    said = [each for each in said if each.seq <= last]
    shown: list[dict[str, Any]] = [
        {
            "turn": turn,
            "is_raw": any(span.first_seq <= turn.message.seq <= span.last_seq for span in window.raw),
            "summary": next((each for each in active if each.first_seq <= turn.message.seq <= each.last_seq), None),
        }
        for turn in turns(said)
    ]
    return {
        "conversation": window.conversation,
        "pressure": window.pressure,
        "turns": _with_gaps(shown, first, last),
        "earlier": first if 1 < first <= count else None,
        "later": last + 1 if first <= last < count else None,
        "is_cut": is_cut,
    }


def _with_gaps(shown: list[dict[str, Any]], first: int, last: int) -> list[dict[str, Any]]:
    """The turns with a mark for every stretch of seqs between these two that has no message: their rows are gone."""
    marked, expected = [], first
    for each in shown:
        seq = each["turn"].message.seq
        if seq > expected:
            marked.append({"gap": MessageSpan(expected, seq - 1)})
        marked.append(each)
        expected = seq + 1
    if expected <= last:
        marked.append({"gap": MessageSpan(expected, last)})
    return marked

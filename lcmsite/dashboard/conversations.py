"""The conversations of a workspace, and one of them, readable."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from lcmsite.dashboard.addresses import number_in
from lcmsite.dashboard.asking import ask, may
from lcmsite.dashboard.pages import Visit, page
from lcmsite.dashboard.reading import turns
from lcmsite.types import KeyScope
from retrieval.describing.browsing import BrowseSort

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
    return visit.show(template, found=found, last=last, query=given.get("q", ""), sort=sort, sorts=list(BrowseSort))


@page()
def transcript(visit: Visit, conversation_id: int) -> HttpResponse:
    """The messages, as they were said, from one on."""
    conversation = ask(visit.caller, "lcm_show", conversation_id=conversation_id)
    count = conversation.counters.message_count
    asked = number_in(visit.request.GET, "seq")
    first = max(1, min(asked - BEFORE, count)) if asked else max(1, count - ON_A_PAGE + 1)
    return visit.show(
        "dashboard/transcript.html",
        conversation=conversation,
        pressure=ask(visit.caller, "lcm_evaluate", conversation_id=conversation_id),
        may_compact=may(visit.caller, "lcm_compact"),
        asked=asked,
        **_messages(visit, conversation_id, first, count),
    )


@page()
def more(visit: Visit, conversation_id: int) -> HttpResponse:
    """The messages from one on, to be put in behind or before those that are shown."""
    conversation = ask(visit.caller, "lcm_show", conversation_id=conversation_id)
    first = number_in(visit.request.GET, "seq") or 1
    return visit.show(
        "dashboard/_messages.html",
        conversation=conversation,
        **_messages(visit, conversation_id, first, conversation.counters.message_count),
    )


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


def _messages(visit: Visit, conversation_id: int, first: int, count: int) -> dict[str, Any]:
    last = min(count, first + ON_A_PAGE - 1)
    if not count or first > count:
        return {"turns": [], "first": first, "last": 0, "earlier": None, "later": None}
    window = ask(visit.caller, "lcm_lineage_window", conversation_id=conversation_id, from_seq=first, to_seq=last)
    raw = {message.seq for message in window.messages or () if message.raw}
    active = [each for each in window.summaries if each.active]
    said = ask(
        visit.caller, "lcm_messages", conversation_id=conversation_id, after_seq=first - 1, limit=last - first + 1
    )
    shown = [
        {
            "turn": turn,
            "is_raw": turn.message.seq in raw,
            "summary": next((s for s in active if s.first_seq <= turn.message.seq <= s.last_seq), None),
        }
        for turn in turns(said)
    ]
    return {
        "turns": shown,
        "first": first,
        "last": last,
        "earlier": max(1, first - ON_A_PAGE) if first > 1 else None,
        "later": last + 1 if last < count else None,
    }

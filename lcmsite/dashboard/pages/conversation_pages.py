"""The conversations of a workspace, the transcript of one, and imports."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse

from conversations.errors import Conflict, Invalid
from conversations.humanize import counted
from conversations.store.conversations import ConversationStore
from lcmsite.catalogue.problems import Problem
from lcmsite.dashboard.parts.transcript_parts import turns
from lcmsite.dashboard.visit import POST, Visit, number_in, page, text_in
from lcmsite.importing.history import KNOWN_FORMATS, History
from lcmsite.importing.importer import Importer
from lcmsite.types import KeyScope
from retrieval.describing.browsing import BrowseSort
from retrieval.types import MessageSpan

ON_A_PAGE = 40
# The number of messages shown before a requested one.
BEFORE = 4
# The maximum length of a file's name, in bytes, on most file systems.
LONGEST_NAME = 255


@page()
def conversations(visit: Visit) -> HttpResponse:
    """The conversations, page by page; a search replaces only the list."""
    given = visit.request.GET
    sort = given.get("sort", BrowseSort.UPDATED)
    found = visit.call(
        "lcm_browse",
        query=text_in(given, "q") or None,
        sort=sort if sort in list(BrowseSort) else None,
        page=max(1, number_in(given, "page") or 1),
    )
    return visit.show(
        "_conversations.html" if visit.is_part else "conversations.html",
        found=found,
        last=max(1, math.ceil(found.total / found.limit)),
        query=given.get("q", ""),
        sort=sort,
        sorts=list(BrowseSort),
    )


@page()
def transcript(visit: Visit, conversation_id: int) -> HttpResponse:
    """Messages around a requested one, or the newest messages."""
    wanted = number_in(visit.request.GET, "seq")
    shown = _messages(visit, conversation_id, None if wanted is None else max(1, wanted - BEFORE))
    return visit.show("transcript.html", wanted=wanted, **shown)


@page()
def more_messages(visit: Visit, conversation_id: int) -> HttpResponse:
    """The next or the previous messages of the transcript."""
    given = visit.request.GET
    before = number_in(given, "before")
    if before is None:
        shown = _messages(visit, conversation_id, number_in(given, "seq") or 1)
        return visit.show("_messages.html", **{**shown, "earlier": None})
    shown = _messages(visit, conversation_id, max(1, before - ON_A_PAGE), last=before - 1)
    # The page already shows the messages after this part, unless the part ended early.
    return visit.show("_messages.html", **{**shown, "later": shown["later"] if shown["is_cut"] else None})


@page()
def message(visit: Visit, message_id: str) -> HttpResponse:
    """One message in full; texts that are stored in files are put back."""
    try:
        record = visit.call("lcm_message", message_id=message_id, whole=True)
    except Conflict as refused:
        if refused.code != "quarantined":
            raise
        # The message is readable, but one of its files is quarantined: show it without the files' texts.
        record = visit.call("lcm_message", message_id=message_id)
    if record.quarantined and visit.request.GET.get("quarantined") == "shown":
        record = visit.call("lcm_read_quarantined", id=record.id).message
    shown = [{"turn": turn} for turn in turns([record], most=None)]
    return visit.show("message.html", message=record, turns=shown, is_whole=True)


@page(KeyScope.WRITE, POST)
def compact(visit: Visit, conversation_id: int) -> HttpResponse:
    """Queue a compaction; the page `job` shows its progress."""
    job = visit.call("lcm_compact", conversation_id=conversation_id, background=True)
    if visit.is_part:
        return visit.show("_job.html", job=job, conversation_id=conversation_id)
    done = f"Compaction was requested as job {job.job_id}."
    return visit.redirect("transcript", done=done, conversation_id=conversation_id)


@page()
def job(visit: Visit, conversation_id: int, job_id: int) -> HttpResponse:
    return visit.show("_job.html", job=visit.call("lcm_job", job_id=job_id), conversation_id=conversation_id)


def _messages(visit: Visit, conversation_id: int, first: int | None, last: int | None = None) -> dict[str, Any]:
    """The context of `_messages.html`: messages from `first` on, or the newest."""
    # At this resolution the window holds the active context and little else.
    window = visit.call("lcm_lineage_window", conversation_id=conversation_id, with_messages=False, resolution=1)
    count = window.message_count
    first = max(1, count - ON_A_PAGE + 1) if first is None else first
    last = min(count, first + ON_A_PAGE - 1 if last is None else last)
    records = (
        visit.call("lcm_messages", conversation_id=conversation_id, after_seq=first - 1, limit=last - first + 1)
        if first <= last
        else []
    )
    # A page of very large messages ends early.
    is_cut = len(records) < last - first + 1 and getattr(records, "next_cursor", None) is not None
    if is_cut:
        last = records[-1].seq
    active = [each for each in window.summaries if each.active]
    branches = visit.call_all("lcm_branches", conversation_id=conversation_id) if window.conversation.moves else []
    shown: list[dict[str, Any]] = []
    expected = first
    # If rows are missing, the list may contain messages after this page; the gaps are shown.
    for turn in turns([each for each in records if each.seq <= last]):
        seq = turn.message.seq
        if seq > expected:
            shown.append({"gap": MessageSpan(expected, seq - 1)})
        is_raw = any(span.first_seq <= seq <= span.last_seq for span in window.raw)
        summary = next((each for each in active if each.first_seq <= seq <= each.last_seq), None)
        branch = next((each for each in branches if each.first_seq <= seq <= each.last_seq), None)
        is_off = branch is not None and seq > branch.active_to_seq
        begins = branch if branch is not None and branch.number and seq == branch.first_seq else None
        shown.append(
            {"turn": turn, "is_raw": is_raw, "summary": None if is_off else summary, "is_off": is_off, "begins": begins}
        )
        expected = seq + 1
    if expected <= last:
        shown.append({"gap": MessageSpan(expected, last)})
    return {
        "conversation": window.conversation,
        "pressure": window.pressure,
        "turns": shown,
        "earlier": first if 1 < first <= count else None,
        "later": last + 1 if first <= last < count else None,
        "is_cut": is_cut,
    }


def _show_import(visit: Visit, problem: Problem | None = None) -> HttpResponse:
    session = text_in(visit.request.POST, "session")
    return visit.show("import.html", known_formats=KNOWN_FORMATS, refusal=problem, session=session)


@page(KeyScope.WRITE, methods=("GET", "HEAD", "POST"), on_refusal=_show_import)
def import_history(visit: Visit) -> HttpResponse:
    """Import a history from an uploaded file; a second attempt continues the first."""
    if visit.request.method != "POST":
        return _show_import(visit)
    file = visit.request.FILES.get("file")
    if not isinstance(file, UploadedFile) or not file.size:
        raise Invalid("Choose a file that is not empty.")
    name = Path(file.name or "history").name
    if len(name.encode()) > LONGEST_NAME:
        raise Invalid("The file's name is too long to be stored here: rename the file.")
    with tempfile.TemporaryDirectory(prefix="lcm-import-") as directory:
        # The copy keeps the name of the uploaded file, which is the default session.
        path = Path(directory) / name
        with path.open("wb") as copy:
            for chunk in file.chunks():
                copy.write(chunk)
        history = History(path=path, session=text_in(visit.request.POST, "session"))
        found = Importer(ConversationStore.from_settings(visit.caller.scope), history).run()
    new = sum(each.created for each in found)
    known = sum(each.stored_before for each in found)
    stored = f"{counted(new, 'message')} stored"
    beside = [f"{known:,} stored before"] if known else []
    if passed_over := history.passed_over.total():
        beside.append(f"{counted(passed_over, 'line')} without a message skipped")
    if broken := history.broken_lines:
        numbers = ", ".join(map(str, broken[:20]))
        beside.append(f"{counted(len(broken), 'broken line')} left out ({numbers}{', ...' if broken[20:] else ''})")
    done = f"{', '.join([stored, *beside])}."
    if len(found) == 1:
        return visit.redirect("transcript", done=done, conversation_id=found[0].conversation_id)
    return visit.redirect("conversations", done=done)

"""The files of a workspace and of a conversation, and one of them: what is known of it, its lines, its bytes."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase

from conversations.errors import NotFound, Unavailable
from lcmsite.api.downloads import download_response
from lcmsite.catalogue.problems import problem_of
from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.addresses import number_in
from lcmsite.dashboard.parts.pager import paged
from lcmsite.dashboard.service import ask
from retrieval.types import ItemKind

ON_A_PAGE = 50
LINES = 200
# One character in so many may be none: an old encoding is still read.
MOST_UNREADABLE = 10


@page()
def files(visit: Visit) -> HttpResponse:
    """All files of the workspace, the newest first."""
    return _listed(visit, "dashboard/files.html", None)


@page()
def conversation_files(visit: Visit, conversation_id: int) -> HttpResponse:
    """Those of one conversation."""
    conversation = ask(visit.caller, "lcm_show", conversation_id=conversation_id)
    return _listed(visit, "dashboard/conversation_files.html", conversation_id, conversation=conversation)


@page()
def file(visit: Visit, file_id: str) -> HttpResponse:
    """What is known of a file, who needs it, and how it begins."""
    described = ask(visit.caller, "lcm_describe", id=file_id)
    if described.kind is not ItemKind.FILE:
        raise NotFound(f"There is no file {file_id[:80]!r} that you may see.")
    return visit.show("dashboard/file.html", described=described, **_lines(visit, file_id, described.erased))


@page()
def lines(visit: Visit, file_id: str) -> HttpResponse:
    """The next lines of a file."""
    return visit.show("dashboard/_file_lines.html", **_lines(visit, file_id, False))


@page()
def download(visit: Visit, file_id: str) -> HttpResponseBase:
    """The bytes as they are, to be saved: no browser shows them as a page of this site."""
    return download_response(visit.request, visit.caller, file_id)


def _lines(visit: Visit, file_id: str, is_erased: bool) -> dict[str, Any]:
    """Some lines; where the storage has lost them, what is known of the file is shown all the same."""
    if is_erased:
        return {"file_id": file_id, "said": None}
    first = max(1, number_in(visit.request.GET, "line") or 1)
    try:
        said = ask(visit.caller, "lcm_read_lines", file_id=file_id, first_line=first, line_count=LINES)
    except Unavailable as refusal:
        return {"file_id": file_id, "said": None, "problem": problem_of(refusal)}
    return {"file_id": file_id, "said": said, "no_text": not _is_text(said.text)}


def _is_text(read: str) -> bool:
    """Whether somebody could read this: bytes of other kinds have NULs, or much that is not UTF-8."""
    return "\0" not in read and read.count("\N{REPLACEMENT CHARACTER}") <= len(read) / MOST_UNREADABLE


def _listed(visit: Visit, template: str, conversation_id: int | None, **context: Any) -> HttpResponse:
    before = visit.request.GET.get("before") or None
    found = ask(visit.caller, "lcm_files", conversation_id=conversation_id, before=before, limit=ON_A_PAGE + 1)
    return visit.show(template, paged=paged(found, most=ON_A_PAGE, key="file_id", before=before), **context)

"""The files of a workspace or a conversation, and one file with its content."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase

from conversations.errors import NotFound, Unavailable
from lcmsite.api.streams import download_response
from lcmsite.catalogue.problems import problem_of
from lcmsite.dashboard.visit import Visit, number_in, page
from retrieval.types import ItemKind

ON_A_PAGE = 50
LINES = 200
# A text may have one undecodable character in this many: an old encoding.
MOST_UNREADABLE = 10


@page()
def files(visit: Visit) -> HttpResponse:
    """The files of the workspace, newest first."""
    return _listed(visit, "dashboard/files.html", None)


@page()
def conversation_files(visit: Visit, conversation_id: int) -> HttpResponse:
    """The files of one conversation, newest first."""
    conversation = visit.ask("lcm_show", conversation_id=conversation_id)
    return _listed(visit, "dashboard/conversation_files.html", conversation_id, conversation=conversation)


@page()
def file(visit: Visit, file_id: str) -> HttpResponse:
    """The details of a file and its first lines."""
    described = visit.ask("lcm_describe", id=file_id)
    if described.kind is not ItemKind.FILE:
        raise NotFound(f"There is no file {file_id[:80]!r} that you may see.")
    return visit.show("dashboard/file.html", described=described, **_lines(visit, file_id, described.erased))


@page()
def lines(visit: Visit, file_id: str) -> HttpResponse:
    """More lines of a file."""
    return visit.show("dashboard/_file_lines.html", **_lines(visit, file_id, False))


@page()
def download(visit: Visit, file_id: str) -> HttpResponseBase:
    """Download the bytes; a browser never shows them as a page of this site."""
    return download_response(visit.request, visit.caller, file_id)


def _lines(visit: Visit, file_id: str, is_erased: bool) -> dict[str, Any]:
    """Some lines of the file; a problem if the storage has lost them."""
    if is_erased:
        return {"file_id": file_id, "lines": None}
    first = max(1, number_in(visit.request.GET, "line") or 1)
    try:
        lines = visit.ask("lcm_read_lines", file_id=file_id, first_line=first, line_count=LINES)
    except Unavailable as refusal:
        return {"file_id": file_id, "lines": None, "problem": problem_of(refusal)}
    return {"file_id": file_id, "lines": lines, "no_text": not _is_text(lines.text)}


def _is_text(read: str) -> bool:
    """Whether the content is text: no NUL, and almost all of it UTF-8."""
    return "\0" not in read and read.count("\N{REPLACEMENT CHARACTER}") <= len(read) / MOST_UNREADABLE


def _listed(visit: Visit, template: str, conversation_id: int | None, **context: Any) -> HttpResponse:
    paged = visit.list_page("lcm_files", limit=ON_A_PAGE, conversation_id=conversation_id)
    return visit.show(template, paged=paged, **context)

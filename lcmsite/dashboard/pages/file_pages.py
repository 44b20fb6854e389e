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

LINES = 200
# If more than one in this many characters cannot be decoded, the file is not shown as text.
MOST_UNREADABLE = 10


@page()
def files(visit: Visit) -> HttpResponse:
    return visit.show("files.html", paged=visit.list_page("lcm_files"))


@page()
def conversation_files(visit: Visit, conversation_id: int) -> HttpResponse:
    return visit.show(
        "conversation_files.html",
        conversation=visit.call("lcm_show", conversation_id=conversation_id),
        paged=visit.list_page("lcm_files", conversation_id=conversation_id),
    )


@page()
def file(visit: Visit, file_id: str) -> HttpResponse:
    """The details of a file and its first lines."""
    described = visit.call("lcm_describe", id=file_id)
    if described.kind is not ItemKind.FILE:
        raise NotFound(f"There is no file {file_id[:80]!r} that you may see.")
    lines = {} if described.erased or described.quarantined else _lines(visit, file_id)
    return visit.show("file.html", described=described, file_id=file_id, **lines)


@page()
def lines(visit: Visit, file_id: str) -> HttpResponse:
    return visit.show("_file_lines.html", file_id=file_id, **_lines(visit, file_id))


@page()
def download(visit: Visit, file_id: str) -> HttpResponseBase:
    """Download the bytes; browsers save them and never show them as a page."""
    return download_response(visit.request, visit.caller, file_id)


def _lines(visit: Visit, file_id: str) -> dict[str, Any]:
    """The requested lines of the file, or the problem if its bytes are unavailable."""
    first = max(1, number_in(visit.request.GET, "line") or 1)
    try:
        lines = visit.call("lcm_read_lines", file_id=file_id, first_line=first, line_count=LINES)
    except Unavailable as refusal:
        return {"problem": problem_of(refusal)}
    # Text has no NUL, and almost all of it is UTF-8.
    unreadable = lines.text.count("\N{REPLACEMENT CHARACTER}")
    return {"lines": lines, "no_text": "\0" in lines.text or unreadable > len(lines.text) / MOST_UNREADABLE}

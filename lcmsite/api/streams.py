"""Stream a file's bytes, or a ledger while it is read; only REST offers these."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.http import FileResponse, HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from conversations.errors import param_error
from conversations.files.large_files import LargeFileService
from conversations.files.reading import FileBytes
from conversations.params import ConversationParams, FileParams
from integrity.ledgers import Ledgers
from lcmsite.access.keys import Caller
from lcmsite.api.concurrency import gate
from lcmsite.api.openapi import path_parameter, stream_responses
from lcmsite.catalogue.problems import NoSuchRange
from lcmsite.types import KeyScope

OCTETS = "application/octet-stream"
JSON_LINES = "application/x-ndjson"
_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})?")


@extend_schema(
    operation_id="files_download",
    tags=["Large file service"],
    parameters=[
        path_parameter(FileParams, "file_id"),
        OpenApiParameter(
            "Range",
            type=str,
            location=OpenApiParameter.HEADER,
            description="One range, as bytes=FIRST-LAST or bytes=FIRST-. Any other form is ignored.",
        ),
    ],
    responses=stream_responses(
        OCTETS,
        {200: "All of the file.", 206: "The range of it that was asked for; Content-Range says which."},
        besides={416},
    ),
)
def download(self: object, request: Request, file_id: str) -> HttpResponseBase:
    """The bytes of a file, or of the requested range."""
    caller: Any = request.user
    return download_response(request, caller, file_id)


def download_response(request: HttpRequest | Request, caller: Caller, file_id: str) -> HttpResponseBase:
    """The response with a file's bytes, for the API and the pages."""
    caller.require(KeyScope.READ)
    wanted = _requested_range(request)
    offset, length = wanted or (0, None)
    found = LargeFileService.from_settings(caller.scope).stream(file_id=file_id, offset=offset, length=length)
    if wanted and offset >= found.file_size:
        found.file.close()
        raise NoSuchRange(
            f"The file has {found.file_size} bytes; no range begins at {offset}.", file_size=found.file_size
        )
    response = FileResponse(found.reader(), status=206 if wanted else 200, content_type=OCTETS)
    response["Content-Length"] = str(found.length)
    response["Accept-Ranges"] = "bytes"
    # Browsers must save the file, never show it as a page of this site.
    response["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(_download_name(found), safe='')}"
    if found.record.content_hash:
        response["ETag"] = f'"{found.record.content_hash}"'
    if wanted:
        response["Content-Range"] = f"bytes {offset}-{offset + found.length - 1}/{found.file_size}"
    return response


def _requested_range(request: HttpRequest | Request) -> tuple[int, int | None] | None:
    """First byte and length in the Range header; None if it is missing or unusable."""
    found = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if found is None:
        return None
    first, last = int(found[1]), None if found[2] is None else int(found[2])
    if last is not None and last < first:
        return None
    return first, None if last is None else last - first + 1


def _download_name(found: FileBytes) -> str:
    """The last part of the file's name, as a browser saves it."""
    name = (found.record.file_name or "").replace("\\", "/").rpartition("/")[2].strip(". ")
    return "".join(each for each in name if each.isprintable()) or found.record.file_id


@dataclass(frozen=True)
class HeldStream:
    """Lines with resources (`held`) that are released when the lines are closed.

    A generator's own `finally` would not run if it is closed before its first line.
    """

    lines: Generator[bytes, None, None]
    held: ExitStack

    def __iter__(self) -> Iterator[bytes]:
        return self.lines

    def close(self) -> None:
        # Close the lines first: their transaction has to end before the resources are released.
        with self.held:
            self.lines.close()


@extend_schema(
    operation_id="conversations_ledger",
    tags=["Ledgers"],
    parameters=[path_parameter(ConversationParams, "conversation_id")],
    responses=stream_responses(JSON_LINES, {200: "The ledger, a JSON object a line."}),
)
def ledger(self: object, request: Request, **in_path: str) -> StreamingHttpResponse:
    """A whole conversation as a ledger, streamed.

    JSON Lines in the format of docs/ledger.md; one that breaks off has no trailer and does not verify. On the command
    line it is `lcm ledger export`.
    """
    caller: Any = request.user
    caller.require(KeyScope.READ)
    if name := next(iter(in_path.keys() & request.GET.keys()), None):
        raise param_error(name, "This is given in the path already.")
    given = {**in_path, **request.GET.dict()}
    return ledger_response(caller, ConversationParams.accepted(given, in_text=given)["conversation_id"])


def ledger_response(caller: Caller, conversation_id: int) -> StreamingHttpResponse:
    """The response that streams a ledger, for the API and the pages."""
    caller.require(KeyScope.READ)
    # Checked before the first line is sent, so that a refusal can still set the status.
    conversation = caller.scope.conversation(conversation_id)
    lines = Ledgers.from_settings(caller.scope).lines(conversation_id=conversation.pk)
    held = ExitStack()
    held.enter_context(gate().entered(caller.scope.actor, heavy=True))
    return StreamingHttpResponse(HeldStream(lines, held), content_type=JSON_LINES)

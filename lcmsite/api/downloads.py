"""Files as they are, streamed: what JSON would have to say in base64, piece by piece. REST alone has this."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from conversations.files.large_files import LargeFileService
from conversations.files.reading import FileBytes
from conversations.params import FileParams
from lcmsite.access.keys import Caller
from lcmsite.api.openapi import documented_stream
from lcmsite.api.requests import OCTETS
from lcmsite.catalogue.problems import NoSuchRange
from lcmsite.types import KeyScope

DOWNLOAD = "files/{file_id}/download/"
_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})?")


@documented_stream(
    "files_download",
    DOWNLOAD,
    FileParams,
    chapter="Large file service",
    media_type=OCTETS,
    statuses={200: "All of the file.", 206: "The range of it that was asked for; Content-Range says which."},
    headers=(
        OpenApiParameter(
            "Range",
            type=str,
            location=OpenApiParameter.HEADER,
            description="One range, as bytes=FIRST-LAST or bytes=FIRST-. Any other form is passed over.",
            required=False,
        ),
    ),
)
def download(self: object, request: Request, file_id: str) -> HttpResponseBase:
    """A file's bytes as they are, or those of the one Range that is asked for."""
    caller: Any = request.user
    return download_response(request, caller, file_id)


def download_response(request: HttpRequest | Request, caller: Caller, file_id: str) -> HttpResponseBase:
    """The file, for a caller from anywhere."""
    caller.require(KeyScope.READ)
    wanted = _wanted(request)
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
    # Whatever the file is, no browser shows it as a page of this site.
    response["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(_name(found), safe='')}"
    response["X-Content-Type-Options"] = "nosniff"
    if found.record.content_hash:
        response["ETag"] = f'"{found.record.content_hash}"'
    if wanted:
        response["Content-Range"] = f"bytes {offset}-{offset + found.length - 1}/{found.file_size}"
    return response


def _wanted(request: HttpRequest | Request) -> tuple[int, int | None] | None:
    """Where the range begins and how long it is; None without one, and for forms that need not be understood."""
    found = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if found is None:
        return None
    first, last = int(found[1]), None if found[2] is None else int(found[2])
    if last is not None and last < first:
        return None
    return first, None if last is None else last - first + 1


def _name(found: FileBytes) -> str:
    """What a browser calls the file: the last piece of its name, whatever directories the name goes through."""
    name = (found.record.file_name or "").replace("\\", "/").rpartition("/")[2].strip(". ")
    return "".join(each for each in name if each.isprintable()) or found.record.file_id

"""Read the body of a request on the event loop, within limits of size and time."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, MutableMapping
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig

from conversations.errors import Invalid
from lcmsite.catalogue.problems import RequestTimeout
from lcmsite.ops.metrics.counters import CLIENT_LIMITS

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# A body may take LCM_REQUEST_TIMEOUT_SECONDS, and a second more for each of so many bytes that have arrived.
SLOWEST_BYTES_PER_SECOND = 4096
# More than this of one body lies on disk.
MOST_IN_MEMORY = 512 * 1024


class ClientGone(Exception):
    """The client closed the connection before the request was complete."""


def declared_length(scope: Scope) -> int | None:
    """The request's Content-Length, None without one; Invalid or RequestDataTooBig for one that is not accepted."""
    declared = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"content-length"), None)
    if declared is None:
        return None
    if not (declared.isascii() and declared.isdigit()):
        raise Invalid("The Content-Length of the request is not a number.")
    length = int(declared[:19])
    if length > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise RequestDataTooBig
    return length


async def read_body(receive: Receive, *, length: int | None) -> IO[bytes]:
    """The whole body, in memory or on disk; RequestTimeout for a client that sends too slowly.

    ClientGone if the client leaves, RequestDataTooBig for more than LCM_MAX_REQUEST_BYTES.
    """
    seconds = settings.DEPLOYMENT.request_timeout_seconds
    began = asyncio.get_running_loop().time()
    is_small = length is not None and length <= MOST_IN_MEMORY
    # Whoever reads it closes it.
    body: IO[bytes] = io.BytesIO() if is_small else SpooledTemporaryFile(MOST_IN_MEMORY)  # noqa: SIM115
    taken, more = 0, True
    try:
        async with asyncio.timeout(seconds) as limit:
            while more:
                event = await receive()
                if event["type"] != "http.request":
                    raise ClientGone
                piece, more = event.get("body", b""), event.get("more_body", False)
                taken += len(piece)
                if taken > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
                    raise RequestDataTooBig
                body.write(piece)
                limit.reschedule(began + seconds + taken / SLOWEST_BYTES_PER_SECOND)
    except BaseException as error:
        body.close()
        if isinstance(error, TimeoutError):
            CLIENT_LIMITS.labels("body_timeout").inc()
            raise RequestTimeout("The body of the request came too slowly (LCM_REQUEST_TIMEOUT_SECONDS).") from None
        raise
    body.seek(0)
    return body

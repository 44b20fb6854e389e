"""Receive a request within limits of size and time; build its WSGI environ."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from importlib import import_module
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from urllib.parse import unquote_to_bytes

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.core.exceptions import RequestDataTooBig
from django.http import parse_cookie

from conversations.errors import Invalid
from lcmsite.access.keys import caller_of
from lcmsite.api.concurrency import DISCONNECTED
from lcmsite.catalogue.problems import RequestTimeout, RequestTooLarge
from lcmsite.ops.metrics.counters import CLIENT_LIMITS

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# The timeout of a body is LCM_REQUEST_TIMEOUT_SECONDS, plus a second for this many bytes received.
SLOWEST_BYTES_PER_SECOND = 4096
# A larger body is kept on disk.
MOST_IN_MEMORY = 512 * 1024


class ClientGone(Exception):
    """The client closed the connection before the request was complete."""


def declared_length(scope: Scope) -> int | None:
    """Return the Content-Length or None. Raises if it is invalid or too large."""
    declared = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"content-length"), None)
    if declared is None:
        return None
    if not (declared.isascii() and declared.isdigit()):
        raise Invalid("The Content-Length of the request is not a number.")
    length = int(declared[:19])
    if length > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise RequestDataTooBig
    return length


async def read_body(receive: Receive) -> IO[bytes]:
    """Read the whole body into memory or a temporary file; the caller closes it.

    Raises RequestTimeout if it is too slow, ClientGone if the client disconnects, and RequestDataTooBig above
    LCM_MAX_REQUEST_BYTES.
    """
    seconds = settings.DEPLOYMENT.request_timeout_seconds
    began = asyncio.get_running_loop().time()
    body = SpooledTemporaryFile(MOST_IN_MEMORY)  # noqa: SIM115  # the caller closes it
    received_bytes, more = 0, True
    try:
        async with asyncio.timeout(seconds) as limit:
            while more:
                event = await receive()
                if event["type"] != "http.request":
                    raise ClientGone
                piece, more = event.get("body", b""), event.get("more_body", False)
                received_bytes += len(piece)
                if received_bytes > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
                    raise RequestDataTooBig
                body.write(piece)
                limit.reschedule(began + seconds + received_bytes / SLOWEST_BYTES_PER_SECOND)
    except BaseException as error:
        body.close()
        if isinstance(error, TimeoutError):
            CLIENT_LIMITS.labels("body_timeout").inc()
            raise RequestTimeout("The body of the request came too slowly (LCM_REQUEST_TIMEOUT_SECONDS).") from None
        raise
    body.seek(0)
    return body


def require_known_caller(scope: Scope) -> None:
    """Refuse a large body without a valid key or session.

    Called before the body is read; the view authenticates the request again.
    """
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    scheme, _, key = headers.get(b"authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        caller_of(key.strip())
    elif not _is_logged_in(headers.get(b"cookie", "")):
        raise RequestTooLarge(
            "Without a valid API key or a login, the body of a request is at most "
            f"{settings.DEPLOYMENT.max_anonymous_bytes} bytes."
        )


def _is_logged_in(cookies: str) -> bool:
    session = parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME)
    return session is not None and SESSION_KEY in import_module(settings.SESSION_ENGINE).SessionStore(session)


def environ_of(scope: Scope, body: IO[bytes]) -> dict[str, Any]:
    """The WSGI environ of an ASGI request, as PEP 3333 defines it."""
    host, port = scope.get("server") or ("localhost", 80)
    address, client_port = scope.get("client") or ("", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port or 0),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": address,
        "REMOTE_PORT": str(client_port),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        DISCONNECTED: scope[DISCONNECTED],
    }
    for sent_name, sent_value in scope["headers"]:
        if b"_" in sent_name:
            continue
        name = sent_name.decode("latin-1").upper().replace("-", "_")
        if name not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            name = f"HTTP_{name}"
        value = sent_value.decode("latin-1")
        if name in environ:
            separator = "; " if name == "HTTP_COOKIE" else ","
            value = f"{environ[name]}{separator}{value}"
        environ[name] = value
    return environ

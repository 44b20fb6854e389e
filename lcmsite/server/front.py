"""Serve the WSGI site as an ASGI application: views run in threads."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar

import structlog
from django.conf import settings
from django.http import HttpResponse

from lcmsite.api.concurrency import DISCONNECTED, Disconnected, FairQueue, Limits, Place, QueueFull, Share, gate
from lcmsite.api.responses import problem_response
from lcmsite.catalogue.problems import INTERNAL, Busy, problem_of
from lcmsite.connections import closing_connections
from lcmsite.ops.metrics.counters import CLIENT_LIMITS
from lcmsite.server.incoming import (
    MOST_IN_MEMORY,
    ClientGone,
    Receive,
    Scope,
    Send,
    declared_length,
    environ_of,
    read_body,
    require_known_caller,
)

logger = structlog.get_logger(__name__)

T = TypeVar("T")
WsgiApplication = Callable[..., Iterable[bytes]]
# Responses are sent in chunks of this size. Chunks of a stream are joined up to this size or time.
PIECE_BYTES = 64 * 1024
SECONDS_TO_GATHER = 0.5


class FileAnswer:
    """`wsgi.file_wrapper`: a file sent at the client's pace; it holds no thread."""

    def __init__(self, file: IO[bytes], block_size: int = PIECE_BYTES) -> None:
        self.file = file

    def read(self) -> bytes:
        return self.file.read(PIECE_BYTES)

    def close(self) -> None:
        self.file.close()


@dataclass(frozen=True)
class Answer:
    """A response of the site, to be sent at the client's pace."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes | FileAnswer = b""

    @property
    def start(self) -> dict[str, Any]:
        return {"type": "http.response.start", "status": self.status, "headers": self.headers}


class BrokenStream(Exception):
    """A streamed response failed after its headers were sent."""


class Front:
    """An ASGI application around a WSGI application.

    Requests run in threads; the process's gate lets `web_threads` operations run at once. One caller gets only a part
    of the threads. Up to `max_waiting_requests` wait here; more are refused. A streamed response, such as a ledger,
    keeps its thread and database connection, but does not count against the limit of running requests; up to
    `web_threads` responses are streamed at once.
    """

    def __init__(self, site: WsgiApplication, *, limits: Limits | None = None) -> None:
        limits = limits or limits_of_process()
        streams = settings.DEPLOYMENT.web_threads
        self.site = site
        self.threads = ThreadPoolExecutor(limits.running.in_all + streams, thread_name_prefix="web")
        self.places = FairQueue(limits)
        self.streams = threading.BoundedSemaphore(streams)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        disconnected: Disconnected = scope.setdefault(DISCONNECTED, Disconnected())
        try:
            with await self._receive_body(scope, receive) as body:
                environ = environ_of(scope, body) | {"wsgi.file_wrapper": FileAnswer}
                loop = asyncio.get_running_loop()
                answer = await self.run_in_thread(lambda place: self._run_site(environ, place, send, loop), scope)
        except ClientGone:
            return
        except BrokenStream:
            raise
        except Exception as error:
            answer = _render_refusal(error, scope)
        finally:
            disconnected.forget_callbacks()
        if answer is not None:
            await _deliver(answer, send, disconnected, self.threads)

    async def _receive_body(self, scope: Scope, receive: Receive) -> IO[bytes]:
        length = declared_length(scope)
        if not length:
            # A body of unknown length is never read: a view that needs a body refuses the request.
            return io.BytesIO()
        if length > settings.DEPLOYMENT.max_anonymous_bytes:
            await self.run_in_thread(lambda place: require_known_caller(scope), scope)
        return await read_body(receive)

    async def run_in_thread(self, work: Callable[[Place], T], scope: Scope) -> T:
        """Run work in a free thread. Raises Busy if too many wait, or ClientGone."""
        place = await take_place(self.places, identify_caller(scope))
        try:
            if scope[DISCONNECTED].is_set():
                raise ClientGone
            # Django closes its connections at the end of a request, but a stream is closed after that.
            done = asyncio.get_running_loop().run_in_executor(self.threads, closing_connections, partial(work, place))
            return await done
        finally:
            self.places.leave(place)

    def _run_site(
        self, environ: dict[str, Any], place: Place, send: Send, loop: asyncio.AbstractEventLoop
    ) -> Answer | None:
        """Run the site in this thread; None for a stream, which is sent from here."""
        head: list[Any] = []
        pieces: Any = self.site(environ, lambda status, headers: head.extend((status, headers)))
        status, headers = head
        answer = Answer(int(status[:3]), _encode_headers(headers))
        if isinstance(pieces, HttpResponse):
            whole = pieces.content
            # Give the database connection back before the client can send another request.
            pieces.close()
            return replace(answer, body=whole if len(whole) <= MOST_IN_MEMORY else _write_to_disk(whole))
        if isinstance(pieces, FileAnswer):
            return replace(answer, body=pieces)
        if not self.streams.acquire(blocking=False):
            pieces.close()
            CLIENT_LIMITS.labels("streams").inc()
            raise Busy("Too many answers are being streamed.")
        loop.call_soon_threadsafe(self.places.leave, place)

        def wait_until_sent(event: dict[str, Any]) -> None:
            # A wrapper, because `send` may return an awaitable that is not a coroutine.
            async def send_event() -> None:
                await send(event)

            asyncio.run_coroutine_threadsafe(send_event(), loop).result()

        try:
            wait_until_sent(answer.start)
            for piece in _join_chunks(pieces):
                if environ[DISCONNECTED].is_set():
                    break
                wait_until_sent(_body_event(piece))
            else:
                wait_until_sent(_body_event(b"", more=False))
        except Exception as error:
            raise BrokenStream from error
        finally:
            pieces.close()
            self.streams.release()
        return None


async def _deliver(answer: Answer, send: Send, disconnected: Disconnected, threads: ThreadPoolExecutor) -> None:
    """Send the response at the client's pace."""
    await send(answer.start)
    body = answer.body
    if isinstance(body, bytes):
        for begin in range(0, len(body) - PIECE_BYTES, PIECE_BYTES):
            await send(_body_event(body[begin : begin + PIECE_BYTES]))
        await send(_body_event(body[-(len(body) % PIECE_BYTES or PIECE_BYTES) :], more=False))
        return
    loop = asyncio.get_running_loop()
    try:
        while piece := await loop.run_in_executor(threads, body.read):
            if disconnected.is_set():
                return
            await send(_body_event(piece))
        await send(_body_event(b"", more=False))
    finally:
        await loop.run_in_executor(threads, body.close)


def _body_event(body: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


def _write_to_disk(whole: bytes) -> FileAnswer:
    file = TemporaryFile()  # noqa: SIM115  # closed when it is sent
    file.write(whole)
    file.seek(0)
    return FileAnswer(file)


def _join_chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join chunks into fewer, larger ones, because each is passed between threads."""
    gathered, began = bytearray(), time.monotonic()
    for piece in pieces:
        gathered += piece
        if len(gathered) >= PIECE_BYTES or time.monotonic() - began >= SECONDS_TO_GATHER:
            yield bytes(gathered)
            gathered, began = bytearray(), time.monotonic()
    if gathered:
        yield bytes(gathered)


def _render_refusal(error: Exception, scope: Scope) -> Answer:
    """Render an error raised before any view ran; re-raise an unexpected one."""
    problem = problem_of(error)
    if problem is INTERNAL:
        raise error
    response = problem_response(error)
    if not scope["path"].startswith(settings.MACHINE_PATHS):
        response.content = problem.detail.encode()
        response["Content-Type"] = "text/plain; charset=utf-8"
    request_id = os.urandom(16).hex()
    response["X-Request-ID"] = request_id
    response["Content-Length"] = str(len(response.content))
    logger.warning(
        "request_refused", code=problem.status, request=f"{scope['method']} {scope['path']}", request_id=request_id
    )
    return Answer(response.status_code, _encode_headers(response.items()), response.content)


def _encode_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.strip().encode("latin-1")) for name, value in headers]


def limits_of_process() -> Limits:
    """Return the limits of the queue, derived from the gate of this process."""
    gated, waiting = gate().limits, settings.DEPLOYMENT.max_waiting_requests
    return Limits(
        # The threads of one caller: for the operations that the gate lets it run, and the heavy ones that may wait.
        running=Share(gated.threads, gated.running.of_one_caller + gated.heavy_waiting.of_one_caller),
        waiting=Share(waiting, (waiting + 1) // 2),
    )


def identify_caller(scope: Scope) -> str:
    """Identify a caller before authentication: by key, session or address."""
    headers = dict(scope["headers"])
    if credentials := headers.get(b"authorization") or headers.get(b"cookie"):
        return hashlib.sha256(credentials).hexdigest()
    client = scope.get("client")
    return client[0] if client else ""


async def take_place(places: FairQueue, caller: str) -> Place:
    """Wait on the event loop for admission. Raises Busy if too many requests wait."""
    admitted = asyncio.get_running_loop().create_future()

    def admit() -> None:
        if not admitted.cancelled():
            admitted.set_result(None)

    place = Place(caller, admit)
    try:
        if not places.enter(place):
            await admitted
    except QueueFull:
        CLIENT_LIMITS.labels("busy").inc()
        raise Busy("Too many requests are waiting; try again.") from None
    except asyncio.CancelledError:
        if not places.give_up(place):
            places.leave(place)
        raise
    return place

"""An HTTP connection of uvicorn, with timeouts and a limit on their number."""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
from functools import cache
from typing import ClassVar

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from conversations.errors import Invalid, LcmError
from lcmsite.api.concurrency import DISCONNECTED, Disconnected
from lcmsite.catalogue.json_text import as_bytes
from lcmsite.catalogue.problems import AddressTooLong, Busy, HeadersTooLarge, RequestTimeout, problem_of
from lcmsite.ops.metrics.counters import CLIENT_LIMITS

MOST_HEADER_BYTES = 64 * 1024
# The parser's limit: it cannot read the parts of a longer address.
MOST_ADDRESS_BYTES = 2**16 - 1
# File descriptors for the process itself: database connections, log, files of metrics, threads that read files.
RESERVED_DESCRIPTORS = 200
# Closing a connection with unread input resets it, and the client may never see the error: wait this long.
SECONDS_TO_READ_ON = 2.0
# `struct linger` (on, 0 seconds): closing the socket resets the connection.
RESET = struct.pack("ii", 1, 0)


class Connection(HttpToolsProtocol):
    """Limits the time to send headers, and to read each part of a response.

    The idle time between requests is uvicorn's `timeout_keep_alive`; `incoming.py` limits the time for bodies. Above
    `max_connections`, the connection that has been idle longest is closed in favour of a new one.
    """

    # The connections of this process that handle no request, longest idle first.
    idle_connections: ClassVar[dict[Connection, None]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        # With this, `pause_writing` is called whenever the client does not read sent data at once.
        transport.set_write_buffer_limits(high=0)
        self.seconds = settings.DEPLOYMENT.request_timeout_seconds
        self.disconnected = Disconnected()
        # The size of the complete headers of a request, and of the chunks since the last of them or the address.
        self.header_bytes = self.unread_bytes = 0
        self.is_within_headers = self.is_refused = False
        self.headers_timer: asyncio.TimerHandle | None = None
        self.answer_timer: asyncio.TimerHandle | None = None
        if len(self.connections) > most_connections():
            self._make_room()
        if not self.is_refused:
            self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.idle_connections.pop(self, None)
        self._stop_headers_timer()
        self._stop_answer_timer()
        self.disconnected.set()

    def data_received(self, data: bytes) -> None:
        if self.is_refused:
            return
        self.unread_bytes += len(data)
        super().data_received(data)
        if self.is_refused or self.transport.is_closing():
            return
        if self.is_within_headers:
            if self.unread_bytes > MOST_HEADER_BYTES:
                self._refuse_headers()
        elif self.cycle is not None and not self.cycle.response_complete:
            # A request is being handled.
            self._stop_headers_timer()
            return
        if self.headers_timer is None and not self.is_refused:
            self._wait_for_headers()

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[DISCONNECTED] = self.disconnected  # type: ignore[literal-required]  # a key of ours
        self.is_within_headers = True
        self.header_bytes = self.unread_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self.unread_bytes = 0
        if len(self.url) > MOST_ADDRESS_BYTES:
            # The parser then calls `send_400_response`.
            raise ValueError

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self.header_bytes += len(name) + len(value) + len(": \r\n")
        self.unread_bytes = 0
        if self.header_bytes > MOST_HEADER_BYTES:
            raise ValueError

    def on_headers_complete(self) -> None:
        self.is_within_headers = False
        self.idle_connections.pop(self, None)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline and not self.transport.is_closing():
            self.idle_connections[self] = None

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that the parser cannot read, in the JSON form of all errors."""
        if len(getattr(self, "url", b"")) > MOST_ADDRESS_BYTES:
            self._refuse(AddressTooLong(f"The address of the request has more than {MOST_ADDRESS_BYTES:,} bytes."))
        elif self.header_bytes > MOST_HEADER_BYTES:
            self._refuse_headers()
        else:
            self._refuse(Invalid("This is not a valid HTTP request."))

    # Flow control: called by the transport

    def pause_writing(self) -> None:
        super().pause_writing()
        self.answer_timer = self.loop.call_later(self.seconds, self._give_up_answer)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_answer_timer()

    # Limits

    def _make_room(self) -> None:
        """Close the connection that was idle longest; if none is idle, refuse this one."""
        oldest = next(iter(self.idle_connections), None)
        CLIENT_LIMITS.labels("connections").inc()
        if oldest is None:
            self._refuse(Busy("Too many connections are open; try again."))
        else:
            self.idle_connections.pop(oldest)
            oldest.transport.abort()

    def _wait_for_headers(self) -> None:
        self.idle_connections.setdefault(self)
        self.headers_timer = self.loop.call_later(self.seconds, self._give_up_headers)

    def _give_up_headers(self) -> None:
        self.headers_timer = None
        CLIENT_LIMITS.labels("header_timeout").inc()
        if self.is_within_headers:
            self._refuse(RequestTimeout("The headers of the request came too slowly (LCM_REQUEST_TIMEOUT_SECONDS)."))
        else:
            # No request has begun, or the client is still sending a refused body.
            self.transport.close()

    def _give_up_answer(self) -> None:
        self.answer_timer = None
        CLIENT_LIMITS.labels("response_timeout").inc()
        # Reset the connection: otherwise the kernel keeps the rest of the response until the client reads it.
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.transport.abort()

    def _refuse_headers(self) -> None:
        CLIENT_LIMITS.labels("headers_too_large").inc()
        self._refuse(HeadersTooLarge("The headers of the request are too large."))

    def _refuse(self, error: LcmError) -> None:
        problem = problem_of(error)
        body = as_bytes(problem.as_json())
        own = {"Content-Type": "application/json", "Content-Length": len(body), "Connection": "close"}
        head = "".join(f"{name}: {value}\r\n" for name, value in {**problem.headers, **own}.items())
        self.transport.write(STATUS_LINE[problem.status] + head.encode() + b"\r\n" + body)
        self.transport.write_eof()
        self.is_refused = True
        self._stop_headers_timer()
        self.loop.call_later(SECONDS_TO_READ_ON, self.transport.close)

    def _stop_headers_timer(self) -> None:
        if self.headers_timer is not None:
            self.headers_timer.cancel()
            self.headers_timer = None

    def _stop_answer_timer(self) -> None:
        if self.answer_timer is not None:
            self.answer_timer.cancel()
            self.answer_timer = None


@cache
def most_connections() -> int:
    """Return `max_connections`, or fewer if the limit of descriptors is too low.

    A connection may need two: its socket, and a file with the request's body or the response.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    configured: int = settings.DEPLOYMENT.max_connections
    if soft == resource.RLIM_INFINITY:
        return configured
    return max(16, min(configured, (soft - RESERVED_DESCRIPTORS) // 2))

"""A wire that is listened to: a relay that passes HTTP on byte for byte, and keeps what went by.

    with Vendor(...) as vendor, Tap(vendor.url) as behind, Tap(gateway.url) as before:
        ...   # the agent asks `before`, which asks the gateway, whose upstream is `behind`
    assert altered(before.passed, behind.passed) == []

It reads no JSON and knows no LCM: what it keeps is what both sides of it got.
"""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_OF_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


@dataclass
class Passed:
    """One request, and as much of its answer as came."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    status: int | None = None
    answer: bytes = field(default=b"", repr=False)
    is_whole: bool = False

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class Tap:
    """Passes on to `target` from `with` to the end of the block."""

    def __init__(self, target: str) -> None:
        self.aim(target)
        self.passed: list[Passed] = []
        tap = self

        class Handler(_Handler):
            pass

        Handler.tap = tap
        self.server = _Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Tap:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def aim(self, target: str) -> None:
        """Pass on to this address from now on."""
        parts = urlsplit(target)
        self.host, self.to_port = str(parts.hostname), int(parts.port or 80)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def asked(self) -> Counter[tuple[str, str, bytes]]:
        """What was asked, and how often."""
        return Counter((each.method, each.path, each.body) for each in self.passed)


def altered(before: Iterable[Passed], behind: Iterable[Passed]) -> list[Passed]:
    """What was not passed on as it came: requests, or answers of which one is not the other's beginning."""
    waiting = list(behind)
    found = []
    # One that broke off and was sent again has the same beginning.
    for asked in sorted(before, key=lambda each: not each.is_whole):
        same = (each for each in waiting if _is_same(asked, each))
        twin = next(same, None)
        if twin is None:
            found.append(asked)
        else:
            waiting.remove(twin)
    return [*found, *waiting]


def _is_same(one: Passed, other: Passed) -> bool:
    """Who leaves in the middle of an answer has only its beginning."""
    is_request = (one.method, one.path, one.body) == (other.method, other.path, other.body)
    whole = one.is_whole and other.is_whole
    is_answer = one.answer == other.answer if whole else other.answer.startswith(one.answer)
    return is_request and one.status == other.status and is_answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Either side may go away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    tap: Tap

    def _pass(self) -> None:
        passed = Passed(self.command, self.path, tuple(self.headers.items()), self._body())
        self.tap.passed.append(passed)
        onward = http.client.HTTPConnection(self.tap.host, self.tap.to_port, timeout=600)
        try:
            self._ask(onward, passed)
            self._answer(onward.getresponse(), passed)
        except (OSError, http.client.HTTPException):
            # As it breaks on one side, it breaks on the other.
            self._reset()
        finally:
            onward.close()

    def do_GET(self) -> None:
        self._pass()

    def do_POST(self) -> None:
        self._pass()

    def do_HEAD(self) -> None:
        self._pass()

    def do_DELETE(self) -> None:
        self._pass()

    def log_message(self, *_: object) -> None:
        pass

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def _ask(self, onward: http.client.HTTPConnection, passed: Passed) -> None:
        onward.putrequest(passed.method, passed.path, skip_host=True, skip_accept_encoding=True)
        onward.putheader("Host", f"{self.tap.host}:{self.tap.to_port}")
        for name, value in passed.headers:
            if name.lower() != "host" and name.lower() not in _OF_CONNECTION:
                onward.putheader(name, value)
        onward.putheader("Content-Length", str(len(passed.body)))
        onward.endheaders(passed.body)

    def _answer(self, response: http.client.HTTPResponse, passed: Passed) -> None:
        passed.status = response.status
        length = response.getheader("content-length")
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in _OF_CONNECTION:
                self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", length)
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while piece := response.read1(65536):
            passed.answer += piece
            self.wfile.write(piece if length is not None else b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.flush()
        if length is None and self.command != "HEAD":
            self.wfile.write(b"0\r\n\r\n")
        passed.is_whole = True

    def _reset(self) -> None:
        self.close_connection = True
        try:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        except OSError:
            return

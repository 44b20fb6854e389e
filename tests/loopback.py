"""HTTP servers on loopback, for tests that play a vendor or listen to one."""

from __future__ import annotations

import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    # Of connections that wait to be accepted: a storm brings many at once.
    request_queue_size = 128
    owner: Any

    def handle_error(self, *_: object) -> None:
        """A client that went away is part of many tests."""


class Loopback:
    """Serves on a port of its own from `with` to the end of the block."""

    def __init__(self, handler: type[LoopbackHandler]) -> None:
        self._server = _Server(("127.0.0.1", 0), handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"


class LoopbackHandler(BaseHTTPRequestHandler):
    """Handles the requests of one connection to a `Loopback`, its `owner`."""

    protocol_version = "HTTP/1.1"
    # Else a piece waits for the acknowledgement of the one before, which the other side delays.
    disable_nagle_algorithm = True
    server: _Server

    @property
    def owner(self) -> Any:
        return self.server.owner

    def take(self) -> None:
        """Handle a request, whatever its verb."""
        raise NotImplementedError

    def _take(self) -> None:
        self.take()

    do_GET = do_POST = do_HEAD = do_DELETE = _take  # noqa: N815

    def read_body(self) -> bytes:
        """The body of the request, whole or in chunks."""
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def begin(self, status: int, **headers: object) -> None:
        """Send the head of an answer; underscores in the names of headers become hyphens."""
        self.send_response(status)
        for name, value in {"content_type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def answer(self, status: int, body: bytes, **headers: object) -> None:
        self.begin(status, content_length=len(body), **headers)
        self.wfile.write(body)

    def send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def end_chunks(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def reset(self) -> None:
        """Break the connection off, as a server that crashes."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def log_message(self, *_: object) -> None:
        pass

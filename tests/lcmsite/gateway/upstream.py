"""An upstream that answers with given bytes, and a way to the database that can be cut."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Handler = BaseHTTPRequestHandler


class _Server(ThreadingHTTPServer):
    # Of connections that wait to be accepted: a storm brings many at once.
    request_queue_size = 100


class Upstream:
    """Takes requests as they come, and answers as `reply` does."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, list[tuple[str, str]], bytes]] = []
        self.reply: Callable[[Handler], None] = answering(b"{}")
        self.gone = threading.Event()
        upstream = self

        class Taking(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Else a piece waits for the acknowledgement of the one before, which the other side delays.
            disable_nagle_algorithm = True

            def _take(self) -> None:
                pieces = [self.rfile.read(int(self.headers.get("content-length") or 0))]
                if self.headers.get("transfer-encoding") == "chunked":
                    while size := int(self.rfile.readline(), 16):
                        pieces.append(self.rfile.read(size))
                        self.rfile.readline()
                    self.rfile.readline()
                body = b"".join(pieces)
                upstream.requests.append((self.command, self.path, list(self.headers.items()), body))
                try:
                    upstream.reply(self)
                except OSError:
                    upstream.gone.set()
                    self.close_connection = True

            do_GET = do_POST = do_HEAD = do_DELETE = _take  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self.server = _Server(("127.0.0.1", 0), Taking)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Upstream:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"


def answering(body: bytes, *, status: int = 200, **headers: str) -> Callable[[Handler], None]:
    """Answer with these bytes."""

    def reply(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in {"content_type": "application/json", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def streaming(*pieces: bytes, between: Callable[[int], Any] = lambda number: None, cut: bool = False, **headers: str):
    """Stream these bytes, piece by piece; `cut` ends the connection before the end of the stream."""

    def reply(handler: Handler) -> None:
        handler.send_response(200)
        for name, value in {"content_type": "text/event-stream", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for number, piece in enumerate(pieces):
            between(number)
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            handler.wfile.flush()
        if cut:
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
        else:
            handler.wfile.write(b"0\r\n\r\n")

    return reply


class Relay:
    """A way to the database's socket, to be cut and mended."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.directory = Path(tempfile.mkdtemp(prefix="gateway"))
        self.directory.chmod(0o755)
        self.is_cut = False
        self.open: set[socket.socket] = set()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.directory / ".s.PGSQL.5432"))
        self.listener.listen(100)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self.is_cut = True
        for each in list(self.open):
            _end(each)

    def mend(self) -> None:
        self.is_cut = False

    def close(self) -> None:
        self.cut()
        self.listener.close()
        shutil.rmtree(self.directory)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.is_cut:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            self.open |= {client, server}
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            pass
        _end(one)
        _end(other)
        self.open -= {one, other}


def _end(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        return

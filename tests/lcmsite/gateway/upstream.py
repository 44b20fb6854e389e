"""An upstream that answers with given bytes, and a way to the database that can be cut."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from tests.flows.processes import environment
from tests.loopback import Loopback, LoopbackHandler


class Upstream(Loopback):
    """Takes requests as they come, and answers as `reply` does."""

    def __init__(self) -> None:
        super().__init__(_Taking)
        self.requests: list[tuple[str, str, list[tuple[str, str]], bytes]] = []
        self.reply: Callable[[LoopbackHandler], None] = answering(b"{}")
        self.gone = threading.Event()


class _Taking(LoopbackHandler):
    def take(self) -> None:
        self.owner.requests.append((self.command, self.path, list(self.headers.items()), self.read_body()))
        try:
            self.owner.reply(self)
        except OSError:
            self.owner.gone.set()
            self.close_connection = True


def answering(given: bytes | dict[str, Any], *, status: int = 200, **headers: str) -> Callable[[LoopbackHandler], None]:
    """Answer with these bytes, or with this JSON."""
    body = given if isinstance(given, bytes) else json.dumps(given).encode()

    def reply(handler: LoopbackHandler) -> None:
        handler.answer(status, body, **headers)

    return reply


def streaming(*pieces: bytes, between: Callable[[int], Any] = lambda number: None, cut: bool = False, **headers: str):
    """Stream these bytes, piece by piece; `cut` ends the connection before the end of the stream."""

    def reply(handler: LoopbackHandler) -> None:
        handler.begin(200, **{"content_type": "text/event-stream", "transfer_encoding": "chunked", **headers})
        for number, piece in enumerate(pieces):
            between(number)
            handler.send_chunk(piece)
        if cut:
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
        else:
            handler.end_chunks()

    return reply


class Relay:
    """A way to the socket of the test database, to be cut and mended."""

    def __init__(self) -> None:
        where = connection.settings_dict
        self.target = f"{where['HOST']}/.s.PGSQL.{where['PORT'] or 5432}"
        self.directory = Path(tempfile.mkdtemp(prefix="gateway"))
        self.directory.chmod(0o755)
        self.is_cut = False
        self.open: set[socket.socket] = set()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.directory / ".s.PGSQL.5432"))
        self.listener.listen(100)
        threading.Thread(target=self._accept, daemon=True).start()

    def settings(self, *, data_dir: Path, upstream: str, **more: str) -> dict[str, str]:
        """The environment of a gateway that reaches its database this way."""
        where = connection.settings_dict
        return environment() | {
            "LCM_DATABASE_URL": f"postgres://{where['USER']}@{quote(str(self.directory), safe='')}/{where['NAME']}",
            "LCM_DATA_DIR": str(data_dir),
            "LCM_SECRET_KEY": settings.SECRET_KEY,
            "LCM_GATEWAY_UPSTREAMS": f"test={upstream}",
            "LCM_LOG_FORMAT": "json",
            **more,
        }

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

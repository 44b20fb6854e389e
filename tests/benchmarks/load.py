"""Requests as fast as the answers come, over connections that stay open: a client so small that the server is measured.

One thread waits for all connections at once and sends each its next request, ready-made bytes, when it has answered.
"""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

# Of more at once, Python asks the system for the memory and gives it back with each answer, which takes 35 us.
MOST_AT_ONCE = 65_536


@dataclass
class Connection:
    """One keep-alive connection to a server on this machine."""

    port: int
    received: bytearray = field(default_factory=bytearray)
    wanted: int = 0

    def __post_init__(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: bytes) -> None:
        self.received.clear()
        self.wanted = 0
        self.socket.sendall(request)

    def is_answered(self) -> bool:
        """Take what has come; whether the answer is complete. RuntimeError for any answer that is not a success."""
        more = self.socket.recv(MOST_AT_ONCE)
        if not more:
            raise RuntimeError("The server has closed the connection.")
        self.received += more
        if not self.wanted:
            end = self.received.find(b"\r\n\r\n")
            if end < 0:
                return False
            head = bytes(self.received[:end]).lower()
            _, _, length = head.partition(b"content-length:")
            self.wanted = end + 4 + int(length.split(b"\r\n")[0])
        if len(self.received) < self.wanted:
            return False
        if self.received[9:10] != b"2":
            raise RuntimeError(bytes(self.received).decode(errors="replace"))
        return True

    def ask(self, request: bytes) -> None:
        """Send a request and wait for the whole answer."""
        self.send(request)
        while not self.is_answered():
            pass

    def close(self) -> None:
        self.socket.close()


def request(path: str, body: Any, *, key: str = "") -> bytes:
    """A POST of JSON as it goes over the wire."""
    packed = json.dumps(body).encode()
    return _head("POST", path, "Content-Type: application/json", f"Content-Length: {len(packed)}", key=key) + packed


def question(path: str, params: Mapping[str, Any], *, key: str) -> bytes:
    """A GET with its params."""
    said = {name: json.dumps(value) if isinstance(value, bool) else value for name, value in params.items()}
    return _head("GET", f"{path}?{urlencode(said)}", key=key)


def _head(method: str, path: str, *headers: str, key: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def send_all(connections: list[Connection], requests: list[Iterator[bytes]]) -> list[float]:
    """Send each connection its requests, one at a time; the seconds that each answer took."""
    taken: list[float] = []
    sent: dict[int, float] = {}
    with selectors.DefaultSelector() as selector:

        def send_next(place: int) -> None:
            following = next(requests[place], None)
            if following is None:
                selector.unregister(connections[place].socket)
            else:
                sent[place] = time.perf_counter()
                connections[place].send(following)

        for place, connection in enumerate(connections):
            selector.register(connection.socket, selectors.EVENT_READ, place)
            send_next(place)
        while selector.get_map():
            for ready, _ in selector.select():
                if connections[ready.data].is_answered():
                    taken.append(time.perf_counter() - sent[ready.data])
                    send_next(ready.data)
    return taken

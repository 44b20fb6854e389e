"""Clients that send or read slowly, or not at all, on raw sockets; and a polite one beside them."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

SECONDS_BETWEEN_BYTES = 1.0
SECONDS_TO_ANSWER = 30


@dataclass(frozen=True)
class Target:
    """Where the slow ones go: a port, a path with a body to send and one with a long answer to read."""

    port: int
    writes_to: str
    reads_from: str
    content_type: str = "application/json"
    key: str = ""

    def head(self, verb: str, path: str, *headers: str) -> bytes:
        lines = [f"{verb} {path} HTTP/1.1", "Host: localhost", *headers]
        # What a form needs for its body to be read.
        lines.append(f"Cookie: csrftoken={'a' * 32}")
        if self.key:
            lines.append(f"Authorization: Bearer {self.key}")
        return "\r\n".join(lines).encode() + b"\r\n"


@dataclass
class Slow:
    """So many clients of one kind: silent, header, body or reader."""

    kind: str
    count: int
    target: Target
    closed: int = 0
    connected: int = 0
    answers: set[bytes] = field(default_factory=set)

    async def stay(self) -> None:
        """Connect and stay until the server closes the connection."""
        loop = asyncio.get_running_loop()
        with socket.socket() as client, suppress(OSError, TimeoutError):
            client.setblocking(False)
            if self.kind == "reader":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await loop.sock_connect(client, ("127.0.0.1", self.target.port))
            self.connected += 1
            try:
                await loop.sock_sendall(client, self.beginning())
                await self.linger(client)
            finally:
                self.closed += 1

    def beginning(self) -> bytes:
        match self.kind:
            case "header":
                return self.target.head("GET", self.target.reads_from)
            case "body":
                length = (f"Content-Type: {self.target.content_type}", "Content-Length: 1000")
                return self.target.head("POST", self.target.writes_to, *length) + b"\r\n{"
            case "reader":
                return self.target.head("GET", self.target.reads_from) + b"\r\n"
        return b""

    async def linger(self, client: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self.kind == "reader":
                await asyncio.sleep(SECONDS_BETWEEN_BYTES)
                # What has arrived would take hours at this pace.
                if not is_established(client) or not await loop.sock_recv(client, 1):
                    return
                continue
            with suppress(TimeoutError):
                said = await asyncio.wait_for(loop.sock_recv(client, 4096), SECONDS_BETWEEN_BYTES)
                if not said:
                    return
                self.answers.add(said[9:12])
            if self.kind in ("header", "body"):
                await loop.sock_sendall(client, b"X-A: b\r\n" if self.kind == "header" else b" ")


def is_established(client: socket.socket) -> bool:
    """Whether the server has not closed the connection, as the system sees it."""
    return client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == b"\x01"


@asynccontextmanager
async def at_work(*slow: Slow) -> AsyncIterator[None]:
    """Within, all of them are connected, as long as the server lets them."""
    tasks = [asyncio.create_task(each.stay()) for each in slow for _ in range(each.count)]
    try:
        deadline = time.monotonic() + SECONDS_TO_ANSWER
        while sum(each.connected for each in slow) < len(tasks) and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def ask(port: int, request: bytes) -> int:
    """The status of the answer to this on a connection of its own."""
    async with asyncio.timeout(SECONDS_TO_ANSWER):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
    return int(answer[9:12] or b"0")


async def politely(requests: Sequence[tuple[int, bytes]], *, rounds: int) -> None:
    """Ask each of these, by port, some times; AssertionError for an answer that is no success."""
    for _ in range(rounds):
        for port, request in requests:
            assert await ask(port, request) in (200, 201, 202), request.partition(b"\r\n")[0]

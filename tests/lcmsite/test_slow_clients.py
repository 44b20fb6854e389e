"""Clients that are slow or silent keep nobody else waiting, with a key or without, and are sent away in the end."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import psycopg
import pytest
from pytest_django import DjangoDbBlocker

from tests.committed import committed
from tests.factories import a_workspace
from tests.flows.processes import constants, database_url, start_server, stop_server
from tests.lcmsite.agents import a_call, own
from tests.lcmsite.callers import an_api_key
from tests.lcmsite.operating import Site, agents_are_served, answers, eventually, free_port
from tests.lcmsite.slow_clients import Slow, Target, ask, at_work, politely

pytestmark = pytest.mark.thorough

REFUSED = 14
KINDS = ("silent", "header", "body", "reader")
BUNDLE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
FORM = "application/x-www-form-urlencoded"
SECONDS = 4


@dataclass(frozen=True)
class Running:
    """A site as `lcm up` serves it, with keys of polite and of slow clients, and a conversation with a long ledger."""

    data_dir: Path
    port: int
    mcp_port: int
    write_key: str
    read_key: str
    slow_key: str
    conversation_id: int = 0

    @staticmethod
    def request(verb: str, path: str, body: bytes = b"", *headers: str, key: str = "", length: int = 0) -> bytes:
        lines = [f"{verb} {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
        if key:
            lines.append(f"Authorization: Bearer {key}")
        if body or length:
            lines += [f"Content-Length: {length or len(body)}", "Content-Type: application/json"]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def polite(self) -> list[tuple[int, bytes]]:
        """A page, a list, an append and a call of an agent."""
        append = json.dumps({"messages": [{"role": "user", "parts": [{"part_type": "text", "text_content": "hi"}]}]})
        path = f"/api/v1/conversations/{self.conversation_id}/messages/"
        accept = "Accept: application/json, text/event-stream"
        call = a_call("lcm_describe", {"id": f"conv_{self.conversation_id}"})
        return [
            (self.port, self.request("GET", "/login/")),
            (self.port, self.request("GET", "/api/v1/conversations/", key=self.read_key)),
            (self.port, self.request("POST", path, append.encode(), key=self.write_key)),
            (self.mcp_port, self.request("POST", "/mcp", call, accept, key=self.read_key)),
        ]

    def slow(self, each: int) -> list[Slow]:
        """So many slow clients of each kind: of pages, REST and MCP, with a key of their own and without."""
        page = Target(self.port, "/login/", BUNDLE, FORM)
        rest = Target(self.port, "/api/v1/conversations/", f"/api/v1/conversations/{self.conversation_id}/ledger/")
        mcp = Target(self.mcp_port, "/mcp", "/mcp")
        targets = [page, rest, mcp, replace(rest, key=self.slow_key), replace(mcp, key=self.slow_key)]
        return [Slow(kind, each, target) for kind in KINDS for target in targets]


@contextmanager
def a_site(data_dir: Path, blocker: DjangoDbBlocker, **given: str) -> Iterator[Running]:
    """The processes of `lcm up` that listen, on the test database."""
    with committed(blocker):
        workspace = a_workspace()
        write, read, slow = (an_api_key(workspace, scope) for scope in ("write", "read", "write"))
        with served("web", data_dir, **given) as port, served("mcp", data_dir, **given) as mcp_port:
            eventually(lambda: answers(port) and agents_are_served(mcp_port), seconds=90)
            yield Running(data_dir, port, mcp_port, write, read, slow, with_a_long_ledger(Site(port, write)))


@contextmanager
def served(kind: str, data_dir: Path, **given: str) -> Iterator[int]:
    port = free_port()
    running = start_server(kind, port, own({"LCM_DATA_DIR": str(data_dir), "LCM_LOG_LEVEL": "ERROR"} | given, ""))
    try:
        yield port
    finally:
        stop_server(running)


def with_a_long_ledger(site: Site) -> int:
    """A conversation whose ledger is longer than what a connection buffers."""
    made = site.post("conversations/", {"session_id": "long"})["conversation_id"]
    part = {"part_type": "text", "text_content": "a message that is some hundred words long " * 50}
    for _ in range(4):
        site.post(f"conversations/{made}/messages/", {"messages": [{"role": "user", "parts": [part]}] * 100})
    return made


@pytest.fixture(scope="module")
def running(django_db_setup: None, django_db_blocker: DjangoDbBlocker, data_dir: Path) -> Iterator[Running]:
    timeouts = {"LCM_REQUEST_TIMEOUT_SECONDS": str(SECONDS)} | constants(idle_timeout_seconds=SECONDS)
    with a_site(data_dir, django_db_blocker, **timeouts) as running:
        yield running


def test_a_polite_client_is_answered_beside_slow_ones_who_are_sent_away(running):
    slow = running.slow(10)

    async def go() -> None:
        async with at_work(*slow):
            await politely(running.polite(), rounds=3)
            async with asyncio.timeout(60):
                while any(each.closed < each.count for each in slow):
                    await asyncio.sleep(0.1)

    asyncio.run(go())

    assert {b"408"} == {code for each in slow if each.kind == "header" for code in each.answers}
    assert b"408" in {code for each in slow if each.kind == "body" for code in each.answers}


@pytest.mark.parametrize(
    "path, key, status",
    [("/login/", "", 413), ("/api/v1/conversations/", "", 413), ("/api/v1/conversations/", "lcm_wrong", 401)],
)
def test_an_unknown_caller_is_refused_before_a_large_body_is_read(running, path, key, status):
    # The body never comes.
    request = running.request("POST", path, key=key, length=1024**2)

    async def go() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(request)
        async with asyncio.timeout(30):
            answer = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return answer

    assert asyncio.run(go()).split()[1] == str(status).encode()


def test_a_known_caller_may_send_a_large_body(running):
    path = f"/api/v1/conversations/{running.conversation_id}/messages/"
    part = {"part_type": "text", "text_content": "x y " * 50_000}
    body = json.dumps({"messages": [{"role": "user", "parts": [part]}]}).encode()

    status = asyncio.run(ask(running.port, running.request("POST", path, body, key=running.write_key)))

    assert status == 201


def test_a_body_of_unknown_length_is_refused(running):
    chunked = running.request(
        "POST", "/api/v1/conversations/", b"", "Transfer-Encoding: chunked", key=running.write_key
    )

    status = asyncio.run(ask(running.port, chunked + b"2\r\n{}\r\n0\r\n\r\n"))

    assert status == 411


def test_headers_without_an_end_are_refused(running):
    endless = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: b\r\n" * 100_000

    status = asyncio.run(ask(running.port, endless))

    assert status == 431


@pytest.mark.parametrize(
    ("request_line", "status", "code"),
    [
        (b"GET /api/v1/matches/?query=" + b"a" * 70_000 + b" HTTP/1.1", 414, "address_too_long"),
        (b"GET /api/v1/matches/?query=" + b"a" * 60_000 + b" HTTP/1.1", 401, "unauthenticated"),
        (b"NOT HTTP", 400, "invalid"),
        (b"GET /api/v1/matches/ HTTP/1.1\r\nX-A: " + b"a" * 70_000, 431, "headers_too_large"),
        (b"GET /api/v1/matches/ HTTP/1.1\r\nX-A: " + b"a" * 60_000, 401, "unauthenticated"),
        (b"GET /api/v1/matches/ HTTP/1.1" + b"\r\na:b" * 20_000, 431, "headers_too_large"),
        (
            b"GET /api/v1/matches/?query=" + b"a" * 60_000 + b" HTTP/1.1\r\nX-A: " + b"a" * 30_000,
            401,
            "unauthenticated",
        ),
    ],
    ids=["too long", "long", "not HTTP", "header too large", "large header", "too many headers", "both long"],
)
@pytest.mark.parametrize("chunk", [1_000, 200_000])
def test_a_long_address_or_header_and_what_is_not_http_are_refused_as_json(running, request_line, status, code, chunk):
    request = request_line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for begins in range(0, len(request), chunk):
            connection.sendall(request[begins : begins + chunk])
            # So that the server reads the chunks one by one.
            time.sleep(0.001)
        head, _, body = b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n\r\n")

    assert (int(head.split()[1]), json.loads(body)["code"]) == (status, code)
    assert b"application/json" in head


def test_more_connections_than_allowed_close_those_that_waited_longest(running):
    with served("web", running.data_dir, **constants(max_connections=16)) as port:
        eventually(lambda: answers(port))
        silent = Slow("silent", 100, Target(port, "", ""))

        async def go() -> None:
            async with at_work(silent):
                await politely([(port, running.request("GET", "/login/"))], rounds=20)

        asyncio.run(go())

    assert silent.closed >= 84


def test_requests_beyond_those_that_may_wait_are_refused_at_once(running):
    request = running.request("GET", "/api/v1/conversations/", key=running.read_key)
    with served("web", running.data_dir, **constants(web_threads=1, max_waiting_requests=2)) as port:
        eventually(lambda: answers(port))

        async def go() -> list[int]:
            with psycopg.connect(database_url()) as lock:
                lock.execute("LOCK TABLE conversations IN ACCESS EXCLUSIVE MODE")
                tasks = [asyncio.create_task(ask(port, request)) for _ in range(30)]
                done: set[asyncio.Task[int]] = set()
                while len(done) < REFUSED:
                    done, _ = await asyncio.wait(tasks, timeout=0.1)
            await asyncio.gather(*tasks)
            return [task.result() for task in done]

        refused = asyncio.run(go())

    # One caller has 15 of the threads, and one more request of it waits for a thread.
    assert refused[:REFUSED] == [503] * REFUSED


def test_a_request_at_work_is_answered_before_its_server_ends(running):
    request = running.request("GET", "/api/v1/conversations/", key=running.read_key)
    with served("web", running.data_dir) as port:
        eventually(lambda: answers(port))

        async def go() -> int:
            with psycopg.connect(database_url()) as lock:
                lock.execute("LOCK TABLE conversations IN ACCESS EXCLUSIVE MODE")
                asked = asyncio.create_task(ask(port, request))
                await asyncio.to_thread(eventually, lambda: waits_for_a_lock(lock))
                newest = max(psutil.Process().children(), key=lambda process: process.create_time())
                newest.terminate()
                await asyncio.sleep(0.5)
            return await asked

        assert asyncio.run(go()) == 200


def test_a_search_is_cancelled_at_the_database_when_its_client_disconnects(running):
    search = f"/api/v1/conversations/{running.conversation_id}/matches/?query=word.*long&mode=regex"
    with served("web", running.data_dir, LCM_SEARCH_TIMEOUT_MS="600000") as port:
        eventually(lambda: answers(port))
        with psycopg.connect(database_url()) as lock:
            lock.execute("LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(running.request("GET", search, key=running.read_key))
                eventually(lambda: waits_for_a_lock(lock))

            eventually(lambda: not waits_for_a_lock(lock))


def test_ledgers_that_are_broken_off_leave_their_database_connections_to_others(running):
    ledger = running.request("GET", f"/api/v1/conversations/{running.conversation_id}/ledger/", key=running.read_key)
    with served("web", running.data_dir, LCM_POOL_SIZE="2", **constants(pool_timeout_seconds=2)) as port:
        eventually(lambda: answers(port))
        for _ in range(6):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(ledger)
                assert client.recv(20).startswith(b"HTTP/1.1 200")

        asyncio.run(
            politely([(port, running.request("GET", "/api/v1/conversations/", key=running.read_key))], rounds=20)
        )


def waits_for_a_lock(connection: psycopg.Connection) -> bool:
    # A transaction sees the first picture that it took.
    connection.execute("SELECT pg_stat_clear_snapshot()")
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return bool(connection.execute(waiting).fetchone())

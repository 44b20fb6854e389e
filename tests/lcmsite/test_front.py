"""Between a connection and a view: threads are for work alone, and a view learns when its client has gone."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from django.http import HttpResponse

from lcmsite.api.concurrency import DISCONNECTED, Disconnected, FairQueue, Limits, Share
from lcmsite.catalogue.problems import RequestTooLarge
from lcmsite.server.connection import most_connections
from lcmsite.server.front import Front, identify_caller, take_place
from lcmsite.server.incoming import require_known_caller
from tests.lcmsite.dashboard.visiting import browser_of
from tests.lcmsite.operating import eventually, served_here
from tests.lcmsite.slow_clients import is_established

Site = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
MEGABYTE = 1024**2


class Pieces:
    """A streamed answer of so many megabytes."""

    def __init__(self, megabytes: int) -> None:
        self.left = megabytes
        self.threads: set[int] = set()
        self.is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        while self.left:
            self.left -= 1
            self.threads.add(threading.get_ident())
            yield b"x" * MEGABYTE

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.is_closed = True


@pytest.fixture
def serve(settings: Any) -> Iterator[Callable[..., int]]:
    """Serves a WSGI application in this process, with one thread; its port."""

    def start(site: Site, **given: Any) -> int:
        defaults = {"web_threads": 1, "request_timeout_seconds": 6.0, "max_waiting_requests": 2}
        settings.DEPLOYMENT = replace(settings.DEPLOYMENT, **defaults | given)
        most_connections.cache_clear()
        threads, waiting = settings.DEPLOYMENT.web_threads, settings.DEPLOYMENT.max_waiting_requests
        front = Front(site, limits=Limits(running=Share(threads, threads), waiting=Share(waiting, (waiting + 1) // 2)))
        return servers.enter_context(served_here(front, lifespan="off"))

    with ExitStack() as servers:
        yield start


@contextmanager
def connected(port: int, request: bytes) -> Iterator[socket.socket]:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(30)
        client.connect(("127.0.0.1", port))
        client.sendall(request)
        yield client


def fetch(port: int, verb: str = "GET", *, path: str = "", **given: Any) -> httpx2.Response:
    # To load the certificates of all authorities would take longer than the request.
    return httpx2.request(verb, f"http://127.0.0.1:{port}/{path}", timeout=60, trust_env=False, verify=False, **given)


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def plain(environ: dict[str, Any], start_response: Callable[..., Any]) -> HttpResponse:
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return HttpResponse(body)


def test_a_view_begins_when_the_body_is_complete(serve):
    begun: list[int] = []

    def site(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        begun.append(1)
        return plain(environ, start_response)

    port = serve(site)
    with connected(port, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nx") as slow:
        assert fetch(port, "POST", content=b"quick").content == b"quick"
        assert len(begun) == 1

        slow.sendall(b"y")

        assert slow.recv(4096).startswith(b"HTTP/1.1 200")
    assert len(begun) == 2


def test_a_body_that_stays_away_is_told_so(serve):
    port = serve(plain, request_timeout_seconds=0.5)

    with connected(port, b"POST /api/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nx") as slow:
        said = b"".join(iter(lambda: slow.recv(4096), b""))

    assert said.startswith(b"HTTP/1.1 408") and b'"code":"request_timeout"' in said and b"retry-after" in said


def test_a_client_that_does_not_read_keeps_no_thread_and_is_sent_away(serve):
    large = b"x" * (16 * MEGABYTE)

    def site(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/large":
            return plain(environ, start_response)
        start_response("200 OK", [("Content-Length", str(len(large)))])
        return HttpResponse(large)

    port = serve(site, request_timeout_seconds=2.0)
    with connected(port, get("/large")) as slow:
        slow.recv(1)
        assert fetch(port).status_code == 200
        # Past the timeout, the connection is reset.
        eventually(lambda: not is_established(slow))
        received = 0
        with pytest.raises(ConnectionResetError):
            while piece := slow.recv(MEGABYTE):
                received += len(piece)
    assert received < len(large)


@pytest.mark.parametrize("answer", [HttpResponse(b"x" * 5 * MEGABYTE), Pieces(5)], ids=["at once", "streamed"])
def test_a_large_answer_arrives_whole(serve, answer):
    def site(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [])
        return answer

    assert fetch(serve(site)).content == b"x" * 5 * MEGABYTE


def test_a_stream_that_nobody_reads_keeps_one_thread_of_its_own_and_ends_there(serve):
    streams = [Pieces(64), Pieces(64)]
    left = list(streams)

    def site(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/api/stream":
            return plain(environ, start_response)
        start_response("200 OK", [])
        return left.pop(0)

    port = serve(site, request_timeout_seconds=3.0)
    with connected(port, get("/api/stream")) as slow:
        slow.recv(1)
        assert fetch(port).status_code == 200

        second = fetch(port, path="api/stream")

        assert (second.status_code, second.json()["code"]) == (503, "busy")
        # It is closed past the timeout, by the thread that produced it, whose connection to the database it may have.
        eventually(lambda: streams[0].is_closed)
    assert len(streams[0].threads) == 1 and streams[0].left > 0
    assert streams[1].is_closed and streams[1].left == 64
    assert fetch(port).status_code == 200


def test_a_view_learns_that_its_client_has_gone(serve):
    begun, told = threading.Event(), threading.Event()

    def site(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        disconnected: Disconnected = environ[DISCONNECTED]
        disconnected.add_callback(told.set)
        begun.set()
        told.wait(30)
        assert disconnected.is_set()
        return plain(environ, start_response)

    port = serve(site)
    with connected(port, get("/")):
        assert begun.wait(30)
        assert not told.is_set()

    assert told.wait(30)


def test_a_callback_of_one_request_is_not_called_for_the_next():
    disconnected, called = Disconnected(), []
    disconnected.add_callback(lambda: called.append("over"))
    disconnected.forget_callbacks()
    disconnected.add_callback(lambda: called.append("kept"))

    disconnected.set()
    disconnected.add_callback(lambda: called.append("late"))

    assert called == ["kept", "late"]


def test_requests_follow_each_other_on_one_connection_also_in_a_pipeline(serve):
    port = serve(plain)
    post = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"

    with connected(port, post + b"first" + post + b"again") as client:
        said = b""
        while said.count(b"HTTP/1.1 200") < 2 or not said.endswith(b"again"):
            said += client.recv(4096)

    assert said.index(b"first") < said.index(b"again")


def test_a_header_with_an_underscore_does_not_pose_as_another(serve):
    def site(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        assert "HTTP_X_FORWARDED_PROTO" not in environ
        return plain(environ, start_response)

    asked = fetch(serve(site), headers={"X_Forwarded_Proto": "https"})

    assert asked.status_code == 200


@pytest.mark.thorough
def test_headers_that_come_while_a_request_is_at_work_have_a_bound_as_well(serve):
    begun, go_on = threading.Event(), threading.Event()

    def site(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        begun.set()
        go_on.wait(30)
        return plain(environ, start_response)

    port = serve(site)
    with connected(port, get("/")) as client:
        assert begun.wait(30)
        with pytest.raises(OSError):
            client.sendall(get("/").removesuffix(b"\r\n"))
            while True:
                client.sendall(b"X-A: b\r\n" * 1000)
        go_on.set()


@pytest.mark.thorough
def test_streams_that_end_beside_requests_that_wait_give_their_threads_back(serve):
    def site(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/api/stream":
            return plain(environ, start_response)
        start_response("200 OK", [])
        return Pieces(1)

    port = serve(site, max_waiting_requests=100)

    def ask(number: int) -> int:
        return fetch(port, path="api/stream" if number % 2 else "").status_code

    with ThreadPoolExecutor(20) as clients:
        statuses = list(clients.map(ask, range(60)))

    # One stream at once: others may be refused.
    assert set(statuses) <= {200, 503} and statuses.count(200) >= 30


def test_a_request_that_is_given_up_while_it_waits_takes_no_place():
    async def go() -> None:
        places = FairQueue(Limits(running=Share(1, 1), waiting=Share(4, 2)))
        first = await take_place(places, "a")
        given_up, late = (asyncio.create_task(take_place(places, "b")) for _ in range(2))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)

        late.cancel()
        places.leave(first)
        await asyncio.gather(late, return_exceptions=True)

        await asyncio.wait_for(take_place(places, "c"), 5)

    asyncio.run(go())


@pytest.mark.parametrize("path", ["", "login/", "metrics", "api/v1/conversations/", "no"])
def test_a_body_that_is_too_large_is_refused_on_every_path(path, serve, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    port = serve(plain)

    refused = fetch(port, "POST", path=path, content=b"x" * 1001)

    assert refused.status_code == 413
    if f"/{path}".startswith(settings.MACHINE_PATHS):
        assert refused.json()["code"] == "request_too_large"
    else:
        assert "LCM_MAX_REQUEST_BYTES" in refused.text
    assert fetch(port, "POST", path=path, content=b"x" * 1000).content == b"x" * 1000


@pytest.mark.parametrize("length", ["-1", "many", "1e3", "\u0663"])
def test_a_length_that_is_none_is_refused(length, serve):
    with connected(
        serve(plain), f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\nx".encode()
    ) as client:
        assert client.recv(4096).startswith(b"HTTP/1.1 400")


def test_a_caller_is_known_by_key_then_session_then_address():
    key, session, address = (b"authorization", b"Bearer x"), (b"cookie", b"sessionid=y"), ("10.0.0.1", 5)

    with_key = identify_caller({"headers": [session, key], "client": address})

    assert with_key == identify_caller({"headers": [key], "client": None})
    assert with_key != identify_caller({"headers": [session], "client": address})
    assert identify_caller({"headers": [], "client": address}) == "10.0.0.1"


@pytest.mark.django_db
def test_a_large_body_is_read_for_a_person_who_is_logged_in_and_for_no_stranger():
    session = browser_of("reader").cookies["sessionid"].value

    require_known_caller({"headers": [(b"cookie", f"a=b; sessionid={session}".encode())]})
    for cookies in (b"", b"sessionid=", b"sessionid=made-up", b"no cookie", b"\xff=;;"):
        with pytest.raises(RequestTooLarge):
            require_known_caller({"headers": [(b"cookie", cookies)]})

"""When the client of a search disconnects, its statement is cancelled at PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, connections
from django.test import RequestFactory

from conversations.errors import Unavailable
from lcmsite.api import concurrency
from lcmsite.api.concurrency import CLIENT, DISCONNECTED, Disconnected, cancelled_with_client
from lcmsite.connections import connect
from lcmsite.middleware import RequestLog
from tests.lcmsite.operating import eventually
from tests.statements import execute

# Longer than any test waits.
SLEEP = "SELECT pg_sleep(120) /* cancelling */"

pytestmark = pytest.mark.usefixtures("committed_db")


def sleeping() -> int:
    with connect() as outside:
        [count] = outside.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query = %s AND state = 'active'", [SLEEP]
        ).fetchone()
    return count


@pytest.fixture
def at_work() -> Iterator[Callable[..., tuple[Disconnected, threading.Thread, list[BaseException]]]]:
    """Starts work in a thread, as for a client that can be told to disconnect."""
    threads: list[threading.Thread] = []

    def start(work: Callable[[], Any]) -> tuple[Disconnected, threading.Thread, list[BaseException]]:
        client, errors = Disconnected(), []

        def run() -> None:
            CLIENT.set(client)
            try:
                with cancelled_with_client():
                    work()
            except Exception as error:
                errors.append(error)
            finally:
                connections.close_all()

        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        return client, threads[-1], errors

    yield start
    for each in threads:
        each.join(30)


def sleep() -> None:
    execute(SLEEP)


def test_a_running_statement_is_cancelled_when_the_client_disconnects(at_work):
    client, thread, errors = at_work(sleep)
    eventually(lambda: sleeping() == 1)

    client.set()

    thread.join(30)
    assert not thread.is_alive() and sleeping() == 0
    assert [type(error).__name__ for error in errors] == ["OperationalError"]


def test_so_is_a_statement_that_begins_after_the_client_disconnected(at_work):
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        connection.ensure_connection()
        begun.set()
        go_on.wait(30)
        sleep()

    client, thread, errors = at_work(work)
    begun.wait(30)
    client.set()
    go_on.set()

    thread.join(30)
    assert not thread.is_alive() and errors and sleeping() == 0


def test_nothing_begins_for_a_client_that_is_gone(at_work):
    client = Disconnected()
    client.set()
    token = CLIENT.set(client)
    try:
        with pytest.raises(Unavailable) as gone, cancelled_with_client():
            raise AssertionError("it began")
    finally:
        CLIENT.reset(token)

    assert gone.value.code == "client_disconnected"


def test_behind_its_work_a_connection_is_cancelled_no_more(at_work, monkeypatch):
    monkeypatch.setattr(concurrency, "SECONDS_BETWEEN_CANCELS", 0.001)
    client = Disconnected()
    token = CLIENT.set(client)
    try:
        for _ in range(20):
            with cancelled_with_client(), connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        client.set()
        execute("SELECT pg_sleep(0.2)")
    finally:
        CLIENT.reset(token)


def test_the_servers_signal_reaches_the_operation_and_no_later_request():
    signal, seen = Disconnected(), []

    def answer(request: Any) -> Any:
        from django.http import HttpResponse

        seen.append(CLIENT.get())
        return HttpResponse()

    asked = RequestLog(answer)
    asked(RequestFactory().get("/", **{DISCONNECTED: signal}))
    asked(RequestFactory().get("/"))

    assert seen == [signal, None]


def test_an_agents_search_is_cancelled_when_its_call_is():
    import anyio

    from lcmsite.mcp.calls import CallRunner

    def work() -> None:
        with cancelled_with_client():
            sleep()

    async def call() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(CallRunner().run, work)
            while await anyio.to_thread.run_sync(sleeping) == 0:
                await anyio.sleep(0.05)
            group.cancel_scope.cancel()

    began = time.monotonic()
    anyio.run(call)
    eventually(lambda: sleeping() == 0)
    assert time.monotonic() - began < 60

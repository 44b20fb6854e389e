"""Where PostgreSQL takes no more connections, all are refused in time, and answered as soon as there are some."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from tests.flows.processes import constants
from tests.lcmsite.operating import EmbeddedDatabase, Site, a_key_in, end, eventually, until_ready

pytestmark = pytest.mark.thorough


@contextmanager
def all_connections_taken(data_dir: Path) -> Iterator[None]:
    """Another client has every connection that the server gives, those of the site, too."""
    database = EmbeddedDatabase(data_dir)
    with ExitStack() as hog:
        first = hog.enter_context(database.connect(autocommit=True))
        for _ in range(2):
            with suppress(psycopg.OperationalError):
                while True:
                    hog.enter_context(database.connect(autocommit=True))
            first.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lcm'")
            time.sleep(0.2)
        with suppress(psycopg.OperationalError):
            while True:
                hog.enter_context(database.connect(autocommit=True))
        yield


def test_all_clients_are_refused_in_time_and_answered_as_soon_as_there_are_connections(up, fresh_dir, port):
    running = up(LCM_DATA_DIR=str(fresh_dir), **constants(pool_timeout_seconds=2))
    until_ready(running)
    site = Site(port, a_key_in(fresh_dir, "write"))
    conversation_id = site.post("conversations/", {"session_id": "a"})["conversation_id"]
    body = {"messages": [{"role": "user", "content": "x"}]}

    def append(_: int) -> tuple[int, str | None, float]:
        began = time.monotonic()
        reply = site.ask("POST", f"conversations/{conversation_id}/messages/", body)
        return reply.status_code, reply.headers.get("retry-after"), time.monotonic() - began

    with all_connections_taken(fresh_dir), ThreadPoolExecutor(48) as clients:
        answers = list(clients.map(append, range(48)))
    began = time.monotonic()
    eventually(lambda: append(0)[0] == 201, seconds=10)
    until_normal = time.monotonic() - began
    after = [append(number)[0] for number in range(10)]

    end(running)
    assert {(status, retry_after) for status, retry_after, _ in answers} == {(503, "5")}
    # Generous: one after the other they would wait for a minute, and the pool would try again only after half of one.
    assert max(seconds for _, _, seconds in answers) < 20
    assert until_normal < 8
    assert after == [201] * 10

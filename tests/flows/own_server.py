"""A PostgreSQL for one test alone, which may be shut down under everybody's feet."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import InterfaceError, OperationalError, close_old_connections, connections
from django_huey import get_queue

from lcmsite.embedded_postgres.lease import EmbeddedPostgres
from lcmsite.embedded_postgres.location import DATABASE, PORT, ROLE
from lcmsite.queues import QUEUES
from tests.flows.processes import wait_until
from tests.guardian import a_directory

SECONDS_TO_COME_BACK = 60


@dataclass(frozen=True)
class OwnServer:
    """A server that LCM runs by itself, as `lcm up` does, with a keeper that starts it again when it ends."""

    embedded: EmbeddedPostgres

    @property
    def data_dir(self) -> Path:
        return self.embedded.data_dir

    def restart(self, blow: signal.Signals) -> None:
        """Bring it down, all connections cut off; return when its keeper has started it again."""
        before = self._postmaster()
        assert before is not None
        os.kill(before, blow)
        wait_until(
            lambda: self._postmaster() not in (None, before) and self.embedded.is_running(),
            seconds=120,
            what="the keeper has started the database again",
        )

    def _postmaster(self) -> int | None:
        try:
            return int((self.embedded.location.cluster / "postmaster.pid").read_text().split()[0])
        except (FileNotFoundError, IndexError):
            return None


def patiently(ask: Callable[[], Any]) -> Any:
    """Ask again, as a client does, while the database is on its way down or up."""
    until = time.monotonic() + SECONDS_TO_COME_BACK
    while True:
        close_old_connections()
        try:
            return ask()
        except (OperationalError, InterfaceError):
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


@pytest.fixture
def own_server(django_db_blocker: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnServer]:
    """A server with LCM's tables and its files, on which this process works as well until the test ends."""
    # After an outage nobody is woken for a while: not in the next test.
    monkeypatch.setattr("conversations.work.queue._asleep_until", 0.0)
    data_dir = a_directory()
    server = OwnServer(EmbeddedPostgres(data_dir))
    settings.MEDIA_ROOT = data_dir / "files"
    try:
        with server.embedded.lease(), django_db_blocker.unblock(), _connected_to(server.embedded):
            call_command("migrate", verbosity=0)
            yield server
    finally:
        shutil.rmtree(data_dir, ignore_errors=True)


@contextmanager
def _connected_to(server: EmbeddedPostgres) -> Iterator[None]:
    """Within, Django and the queues of this process, in all its threads, work on this server."""
    # The one that every thread's connection is made from.
    where = connections["default"].settings_dict
    theirs = {
        "NAME": DATABASE,
        "USER": ROLE,
        "PASSWORD": "",
        "HOST": str(server.location.socket_dir),
        "PORT": str(PORT),
    }
    ours = {name: where[name] for name in theirs}
    _let_go_of_connections()
    where.update(theirs)
    try:
        yield
    finally:
        _let_go_of_connections()
        where.update(ours)


def _let_go_of_connections() -> None:
    connections["default"].close()
    connections["default"].close_pool()
    for queue in QUEUES:
        get_queue(queue).storage.close()

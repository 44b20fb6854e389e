"""A gateway in a process of its own, before an upstream that answers as a test wants."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from lcmsite.gateway.surfaces import Surface
from lcmsite.models import GatewayExchange
from tests.committed import committed
from tests.factories import a_workspace
from tests.flows.processes import constants, start_server, stop_server
from tests.lcmsite.callers import an_api_key
from tests.lcmsite.gateway.sessions import PATHS, SESSION, body_of, user
from tests.lcmsite.gateway.upstream import Relay, Upstream, answering
from tests.lcmsite.operating import eventually, free_port, is_gateway

_NUMBERS = itertools.count()
# For all files: a small window, and little patience with a database that is away.
SETTINGS = {"LCM_MODEL_TOKEN_BUDGET": "16000", **constants(gateway_spool_bytes=1024**2, pool_timeout_seconds=1)}


@dataclass
class Running:
    """A gateway that is served, and what is before and behind it."""

    port: int
    upstream: Upstream
    data_dir: Path
    relay: Relay
    environment: dict[str, str] = field(repr=False)
    key: str = ""
    settings: dict[str, str] | None = field(repr=False, default=None)
    process: Any = field(repr=False, default=None)

    def ask(self, path: str, body: Any = b"", *, verb: str = "POST", **headers: str) -> httpx2.Response:
        """Ask with LCM's key, and a vendor's."""
        own = {"x-lcm-api-key": self.key, "x-api-key": "vendor-secret", "x-claude-code-session-id": SESSION}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        data = {"json": body} if isinstance(body, dict) else {"content": body}
        kept = {name: value for name, value in (own | given).items() if value}
        # To load the certificates of all authorities takes longer than the request.
        with httpx2.Client(timeout=30, trust_env=False, verify=False) as client:
            return client.request(verb, self.url + path, headers=kept, **data)

    @contextmanager
    def stream(self, path: str, content: bytes, **headers: str) -> Iterator[httpx2.Response]:
        """The same of an answer that is read piece by piece."""
        given = {"x-lcm-api-key": self.key, **{name.replace("_", "-"): value for name, value in headers.items()}}
        with (
            httpx2.Client(timeout=30, trust_env=False, verify=False) as client,
            client.stream("POST", self.url + path, headers=given, content=content) as answer,
        ):
            yield answer

    def serve(self) -> None:
        """Start it, and wait until it answers."""
        with self.log.open("ab") as errors:
            given = self.environment | (self.settings or {})
            self.process = start_server("gateway", self.port, given, stderr=errors)
        eventually(lambda: is_gateway(self.port), seconds=90)

    def serve_with(self, settings: dict[str, str]) -> None:
        """Have it run with these settings; one that does goes on."""
        if self.settings != settings:
            self.stop()
            self.settings = settings
            self.serve()

    def stop(self) -> None:
        self.relay.mend()
        if self.process:
            stop_server(self.process)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.data_dir / "gateway.log"

    @property
    def spool(self) -> Path:
        return self.data_dir / "gateway" / "spool"


@pytest.fixture(scope="session")
def server(django_db_setup: None, tmp_path_factory: Any) -> Iterator[Running]:
    """One for all files: to start it takes longer than most of them."""
    with Upstream() as upstream:
        relay = Relay()
        data_dir = tmp_path_factory.mktemp("gateway")
        given = relay.settings(data_dir=data_dir, upstream=upstream.url)
        made = Running(free_port(), upstream, data_dir, relay, given)
        try:
            yield made
        finally:
            made.stop()
            relay.close()


@pytest.fixture(scope="module")
def gateway_settings() -> dict[str, str]:
    """The settings of the gateway of a module."""
    return SETTINGS


@pytest.fixture(scope="module")
def running(server: Running, django_db_blocker: DjangoDbBlocker, gateway_settings: dict[str, str]) -> Iterator[Running]:
    with committed(django_db_blocker):
        server.relay.mend()
        server.serve_with(gateway_settings)
        wait_until_all_is_recorded(server)
        yield server
        server.relay.mend()
        wait_until_all_is_recorded(server)
        # What is still under way writes nothing while all is removed.
        server.relay.cut()
        eventually(is_quiet)


def wait_until_all_is_recorded(gateway: Running) -> None:
    """Wait until the gateway has its database, and has recorded what passed before."""
    gateway.key = an_api_key(a_workspace(f"gateway {next(_NUMBERS)}"))
    gateway.upstream.reply = answering(b"{}")
    body = body_of(Surface.CHAT, [user("Are you there?")])
    eventually(lambda: gateway.ask(PATHS[Surface.CHAT], body, x_lcm_fail_closed="true").status_code == 200)
    eventually(lambda: not list(gateway.spool.glob("*.exchange")))
    eventually(lambda: not GatewayExchange.objects.filter(milliseconds=None).exists())


def is_quiet() -> bool:
    """Whether no one else is at work on the database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend' AND state <> 'idle'"
        )
        return cursor.fetchone() is None


@pytest.fixture
def gateway(running: Running) -> Running:
    """The gateway, with a workspace and a key of this test's own."""
    running.relay.mend()
    running.upstream.requests.clear()
    running.upstream.gone.clear()
    running.key = an_api_key(a_workspace(f"gateway {next(_NUMBERS)}"))
    return running

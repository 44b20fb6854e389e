"""A gateway in a process of its own, before an upstream that answers as a test wants."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from django.conf import settings as site
from django.db import connection
from pytest_django import DjangoDbBlocker

from tests.committed import committed
from tests.factories import a_workspace
from tests.flows.processes import environment, start_server, stop_server
from tests.lcmsite.callers import an_api_key
from tests.lcmsite.gateway.sessions import SESSION
from tests.lcmsite.gateway.upstream import Relay, Upstream
from tests.lcmsite.operating import eventually, free_port, is_gateway

_NUMBERS = itertools.count()


@dataclass
class Running:
    """A gateway that is served, and what is before and behind it."""

    port: int
    key: str
    upstream: Upstream
    data_dir: Path
    relay: Relay
    settings: dict[str, str] = field(repr=False)
    process: Any = field(repr=False, default=None)

    def ask(self, path: str, body: Any = b"", *, verb: str = "POST", **headers: str) -> httpx2.Response:
        """Ask with LCM's key, and a vendor's."""
        own = {"x-lcm-api-key": self.key, "x-api-key": "vendor-secret", "x-claude-code-session-id": SESSION}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        data = {"json": body} if isinstance(body, dict) else {"content": body}
        kept = {name: value for name, value in (own | given).items() if value}
        return httpx2.request(verb, self.url + path, headers=kept, timeout=30, trust_env=False, **data)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.data_dir / "gateway.log"

    @property
    def spool(self) -> Path:
        return self.data_dir / "gateway" / "spool"


@pytest.fixture(scope="module")
def gateway_settings() -> dict[str, str]:
    """More settings of the gateway of this module."""
    return {}


@pytest.fixture(scope="module")
def running(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: Any, gateway_settings: dict[str, str]
) -> Iterator[Running]:
    with committed(django_db_blocker), Upstream() as upstream:
        where = connection.settings_dict
        relay = Relay(f"{where['HOST']}/.s.PGSQL.{where['PORT'] or 5432}")
        data_dir = tmp_path_factory.mktemp("gateway")
        given = environment() | {
            "LCM_DATABASE_URL": f"postgres://{where['USER']}@{quote(str(relay.directory), safe='')}/{where['NAME']}",
            "LCM_DATA_DIR": str(data_dir),
            "LCM_SECRET_KEY": site.SECRET_KEY,
            "LCM_GATEWAY_UPSTREAMS": f"test={upstream.url}",
            "LCM_LOG_FORMAT": "json",
            **gateway_settings,
        }
        made = Running(free_port(), an_api_key(), upstream, data_dir, relay, given)
        try:
            serve(made)
            yield made
        finally:
            relay.mend()
            stop_server(made.process)
            relay.close()


def serve(gateway: Running) -> None:
    """Start the gateway, and wait until it is served."""
    with gateway.log.open("ab") as errors:
        gateway.process = start_server("gateway", gateway.port, gateway.settings, stderr=errors)
    eventually(lambda: is_gateway(gateway.port), seconds=90)


@pytest.fixture
def gateway(running: Running) -> Running:
    """The gateway, with a workspace and a key of this test's own."""
    running.relay.mend()
    running.upstream.requests.clear()
    running.upstream.gone.clear()
    running.key = an_api_key(a_workspace(f"gateway {next(_NUMBERS)}"))
    return running

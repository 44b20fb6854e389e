"""The proxy configurations in docs/proxies, in front of a real site, where nginx or Caddy is installed."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.lcmsite.agents import post
from tests.lcmsite.operating import agents_are_served, answers, eventually, free_port
from tests.lcmsite.slow_clients import Slow, Target, at_work
from tests.lcmsite.test_slow_clients import served

pytestmark = pytest.mark.thorough

PROJECT = Path(__file__).resolve().parents[2]
PROXIES = PROJECT / "docs" / "proxies"


@pytest.fixture(scope="module")
def ports(django_db_setup: None, data_dir: Path) -> Iterator[tuple[int, int]]:
    """The ports of a site and of its agents, on the test database."""
    given = {"LCM_ALLOWED_HOSTS": "lcm.example.org,127.0.0.1,localhost", "LCM_WEB_WORKERS": "1"}
    with served("web", data_dir, **given) as web, served("mcp", data_dir, **given) as mcp:
        eventually(lambda: answers(web) and agents_are_served(mcp), seconds=90)
        yield web, mcp


def adapted(text: str, *, ports: tuple[int, int]) -> str:
    """The documented configuration without TLS, on ports of this test."""
    web, mcp = ports
    return text.replace("127.0.0.1:8000", f"127.0.0.1:{web}").replace("127.0.0.1:8001", f"127.0.0.1:{mcp}")


@contextmanager
def nginx(directory: Path, ports: tuple[int, int]) -> Iterator[int]:
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    port = free_port()
    server = adapted((PROXIES / "nginx.conf").read_text(), ports=ports)
    server = re.sub(r"listen 443 ssl;", f"listen 127.0.0.1:{port};", server)
    server = re.sub(r"ssl_certificate\w*\s+\S+;", "", server).replace("timeout 20s", "timeout 2s")
    places = "".join(
        f"{name}_temp_path {directory}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = directory / "nginx.conf"
    config.write_text(
        f"daemon off; pid {directory}/pid; error_log stderr;\n"
        f"events {{}}\nhttp {{ access_log off;\n{places}{server}}}\n"
    )
    checked = subprocess.run([program, "-t", "-c", config], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    with running([program, "-c", str(config)], port):
        yield port


@contextmanager
def caddy(directory: Path, ports: tuple[int, int]) -> Iterator[int]:
    program = shutil.which("caddy")
    if program is None:
        pytest.skip("Caddy is not installed")
    port = free_port()
    text = adapted((PROXIES / "Caddyfile").read_text(), ports=ports)
    text = text.replace("lcm.example.org {", f"http://:{port} {{").replace("header 20s", "header 2s")
    text = text.replace("read_body 2m", "read_body 2s").replace("{\n\tservers", "{\n\tadmin off\n\tservers", 1)
    config = directory / "Caddyfile"
    config.write_text(text)
    own = {"XDG_DATA_HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}
    with running([program, "run", "--config", str(config), "--adapter", "caddyfile"], port, **own):
        yield port


@contextmanager
def running(command: list[str], port: int, **environment: str) -> Iterator[None]:
    proxy = subprocess.Popen(command, env=os.environ | environment, stderr=subprocess.DEVNULL)

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        eventually(listens)
        yield
    finally:
        proxy.terminate()
        proxy.wait(timeout=30)


def client_of(port: int) -> httpx2.Client:
    return httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False)


@pytest.mark.parametrize("proxy", [nginx, caddy], ids=["nginx", "caddy"])
def test_a_documented_proxy_passes_pages_api_and_agents_and_ends_slow_clients(proxy, ports, tmp_path):
    with proxy(tmp_path, ports) as port, client_of(port) as client:
        slow = [Slow(kind, 10, Target(port, "/login/", "/login/")) for kind in ("silent", "header")]
        bodies = Slow("body", 50, Target(port, "/login/", "/login/", "application/x-www-form-urlencoded"))

        async def until_closed() -> None:
            async with asyncio.timeout(60):
                while sum(each.closed for each in slow) < 20:
                    await asyncio.sleep(0.1)

        async def go() -> list[httpx2.Response]:
            async with at_work(*slow, bodies):
                said = [
                    await asyncio.to_thread(client.get, "/login/", headers={"Host": "lcm.example.org"}),
                    await asyncio.to_thread(client.get, "/api/v1/conversations/"),
                    await asyncio.to_thread(post, f"http://127.0.0.1:{port}/mcp", None, b"{}"),
                    await asyncio.to_thread(client.get, "/metrics"),
                ]
                await until_closed()
            return said

        page, api, agents, metrics = asyncio.run(go())

    assert [page.status_code, api.status_code, agents.status_code, metrics.status_code] == [200, 401, 401, 404]
    assert api.json()["code"] == agents.json()["code"] == "unauthenticated"

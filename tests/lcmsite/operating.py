"""`lcm up` as an operator runs it, from outside: its processes, its API, its command line and its database."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx2
import huey
import psutil
import psycopg
import uvicorn
from huey.api import Huey

from lcmsite.embedded_postgres.location import DATABASE, PORT, ROLE, Location
from lcmsite.queues import queue_settings
from lcmsite.server.serving import bind_socket

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Site:
    """A running site, for the holder of a key."""

    port: int
    key: str = ""

    def ask(self, verb: str, path: str, body: Any = None) -> httpx2.Response:
        """The answer of the API, which may be a refusal."""
        return self._asked(verb, f"api/v1/{path}", body)

    def get(self, path: str) -> Any:
        return self.ask("GET", path).raise_for_status().json()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self.ask("POST", path, body).raise_for_status().json()

    def text(self, path: str) -> str:
        return self._asked("GET", path).raise_for_status().text

    def _asked(self, verb: str, path: str, body: Any = None) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        with httpx2.Client(headers=headers, timeout=60, trust_env=False, verify=False) as client:
            return client.request(verb, f"http://127.0.0.1:{self.port}/{path}", json=body)

    def is_ready(self) -> bool:
        try:
            return bool(self._asked("GET", "readyz").json()["status"] == "ready")
        except (httpx2.TransportError, ValueError):
            return False


@dataclass(frozen=True)
class EmbeddedDatabase:
    """The database in a data directory."""

    data_dir: Path

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        place = {"host": str(Location(self.data_dir).socket_dir), "port": PORT, "user": ROLE, "dbname": DATABASE}
        return psycopg.connect(**place, **options)

    def one(self, statement: str) -> Any:
        [[value]] = self._asked(statement)
        return value

    def by(self, statement: str) -> dict[tuple[str, ...], int]:
        """The last column by those before it."""
        return {tuple(row[:-1]): row[-1] for row in self._asked(statement)}

    def _asked(self, statement: str) -> list[tuple[Any, ...]]:
        with self.connect(autocommit=True) as connection:
            return connection.execute(statement).fetchall()


def own_environment(**settings: str) -> dict[str, str]:
    """The environment of a process with these settings and no others."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LCM_")} | settings


def run_python(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """What a program of Python says that is run in the project with these settings."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env=own_environment(**settings),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def run_lcm(data_dir: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """The command line there, in a process of its own."""
    return run_python("manage.py", "lcm", *words, LCM_DATA_DIR=str(data_dir), **settings)


def lcm_in(data_dir: Path, *words: str) -> Any:
    """What the command line answers there, as JSON."""
    ran = run_lcm(data_dir, "--json", *words)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def a_key_in(data_dir: Path, *scopes: str) -> str:
    options = [word for scope in scopes or ("write",) for word in ("--scope", scope)]
    return str(lcm_in(data_dir, "key", "create", "test", *options)["key"])


def a_queue(name: str, *, redis_url: str, connect: Callable[[], Any] | None = None) -> Huey:
    """A queue as django-huey makes it from our settings; on another database where one is given."""
    options = dict(queue_settings(redis_url=redis_url, threads=1)["queues"][name])
    kind = options.pop("huey_class").removeprefix("huey.")
    options.pop("consumer")
    if connect and not redis_url:
        options["connection"] = {"connection": connect}
    connection = options.pop("connection", {})
    made: Huey = getattr(huey, kind)(**options, **connection)
    return made


# Below the ports that the system gives to whoever wants any: of these, no other process takes one before it is bound.
# Each process of the tests has a hundred.
_FIRST_PORT = 10_000 + os.getpid() % 220 * 100
_PORTS = itertools.cycle(range(_FIRST_PORT, _FIRST_PORT + 100))


def free_port() -> int:
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port := next(_PORTS)))
            return port


@contextmanager
def served_here(application: Callable[..., Any], *, lifespan: Literal["on", "off"]) -> Iterator[int]:
    """Serve an ASGI application in this process, as LCM's servers do; its port."""
    # Imported here: it needs Django, which not everybody who imports this module has set up.
    from lcmsite.server.connection import Connection

    port = free_port()
    options = {"loop": "asyncio", "ws": "none", "log_config": None, "access_log": False}
    server = uvicorn.Server(uvicorn.Config(application, http=Connection, lifespan=lifespan, **options))
    running = threading.Thread(target=server.run, args=([bind_socket("127.0.0.1", port)],))
    running.start()
    try:
        eventually(lambda: server.started)
        yield port
    finally:
        server.should_exit = server.force_exit = True
        running.join(timeout=30)


def processes_of(data_dir: Path) -> list[psutil.Process]:
    """All living processes that were told of this data directory, by their environment or their command line."""
    found = []
    for process in psutil.process_iter():
        try:
            told = str(data_dir) in _command(process) or process.environ().get("LCM_DATA_DIR") == str(data_dir)
            if told and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def process_of(data_dir: Path, what: str) -> psutil.Process | None:
    """The first process with this in its command line, the parent before its children."""
    found = [process for process in processes_of(data_dir) if what in _command(process)]
    return min(found, key=lambda process: process.pid, default=None)


def _command(process: psutil.Process) -> str:
    """Nothing of one that has ended meanwhile."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def until_ready(running: subprocess.Popen[str]) -> str:
    """What it says when it is ready."""
    while line := running.stdout.readline():
        if "ready" in line:
            return line
    raise AssertionError(running.stderr.read())


def end(*running: subprocess.Popen[str]) -> str:
    """Stop `lcm up` in good order; what it has said on standard error."""
    for each in running:
        each.terminate()
    return "".join(each.communicate(timeout=60)[1] for each in running)


def eventually(condition: Callable[[], bool], *, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)


def answers(port: int) -> bool:
    return Site(port).is_ready()


def agents_are_served(port: int) -> bool:
    """Whether the tools are there: who comes without a key is told that it takes one."""
    try:
        return httpx2.post(f"http://127.0.0.1:{port}/mcp", trust_env=False, verify=False).status_code == 401
    except httpx2.TransportError:
        # Nobody listens yet, or no longer.
        return False


def is_gateway(port: int) -> bool:
    """Whether the gateway is there."""
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/healthz", trust_env=False, verify=False).text == "alive\n"
    except httpx2.TransportError:
        return False

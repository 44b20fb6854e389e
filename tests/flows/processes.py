"""Real processes beside a test: workers on the test's own database, started, watched and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from urllib.parse import quote

from django.conf import settings as django_settings
from django.db import connection

from lcmsite.environment import variables
from lcmsite.server.serving import bind_socket

PROJECT = Path(__file__).resolve().parent.parent.parent


def database_url() -> str:
    """The address of the database that this test uses, for a process of its own."""
    where = connection.settings_dict
    host = quote(str(where["HOST"] or "localhost"), safe="")
    password = f":{quote(where['PASSWORD'], safe='')}" if where["PASSWORD"] else ""
    return f"postgres://{where['USER']}{password}@{host}:{where['PORT'] or 5432}/{where['NAME']}"


def environment(**settings: object) -> dict[str, str]:
    """The environment of such a process; settings by the names of their fields, constants among them.

    With a `data_dir` among them it works on the server that LCM runs there, else on the database and the files of this
    test.
    """
    known = variables()
    own = {f"LCM_{name.upper()}": str(value) for name, value in settings.items() if f"LCM_{name.upper()}" in known}
    own.setdefault("LCM_DATA_DIR", str(Path(django_settings.MEDIA_ROOT).parent))
    own["LCM_DATABASE_URL"] = "" if "data_dir" in settings else database_url()
    others = {name: value for name, value in settings.items() if f"LCM_{name.upper()}" not in known}
    own["DJANGO_SETTINGS_MODULE"] = "lcmsite.settings"
    return os.environ | own | (constants(**others) if others else {})


def constants(**values: object) -> dict[str, str]:
    """What the environment of a process has to have for these constants of a policy or the deployment."""
    return {"DJANGO_SETTINGS_MODULE": "tests.flows.own_settings", "OWN_CONSTANTS": json.dumps(values)}


def start(*arguments: str, descriptors: Sequence[int] = (), **settings: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env=environment(**settings),
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def start_server(kind: str, port: int, environment: dict[str, str], **streams: int | None) -> subprocess.Popen[bytes]:
    """A process of `lcm up` that serves this port: `web`, or `mcp`."""
    with bind_socket("127.0.0.1", port) as bound:
        descriptor = bound.fileno()
        command = [sys.executable, "-m", "lcmsite.ops.processes", str(os.getpid()), kind, str(descriptor)]
        return subprocess.Popen(command, cwd=PROJECT, env=environment, pass_fds=[descriptor], **streams)


def stop_server(running: subprocess.Popen[bytes]) -> None:
    """Have it answer what is at work, and end."""
    running.terminate()
    assert running.wait(timeout=60) == -signal.SIGTERM


def start_worker(queue: str = "compaction", **settings: object) -> subprocess.Popen[bytes]:
    """A worker process as `lcm up` runs it."""
    return start("-m", "lcmsite.ops.processes", str(os.getpid()), "worker", queue, **settings)


def stop(running: Collection[subprocess.Popen[bytes]]) -> None:
    """End processes in good order, or at any rate."""
    for process in running:
        process.terminate()
    for process in running:
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(happened: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Look again and again until it has happened; a test that waits in vain says for what."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            raise AssertionError(f"Waited {seconds} s in vain until {what}.")
        time.sleep(0.05)

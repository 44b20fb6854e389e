"""`lcm up` as an operator runs it: a process tree that starts with one command and leaves nothing behind."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from lcmsite.embedded.lease import EmbeddedPostgres
from lcmsite.embedded.location import DATABASE, PORT, ROLE, Location
from lcmsite.queues import QUEUES
from tests.lcmsite.queueing import a_queue

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="lcm-up-"))
    directory.chmod(0o711)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def up(data_dir: Path, port: int) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts `up` with a database of its own, and ends whatever a failed test leaves of it."""

    def start(*arguments: str, **settings: str) -> "subprocess.Popen[str]":
        names = {"LCM_DATA_DIR": str(data_dir), "LCM_PORT": str(port), "LCM_WEB_WORKERS": "1", "LCM_LOG_FORMAT": "json"}
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LCM_")}
        return subprocess.Popen(
            [sys.executable, "manage.py", "up", *arguments],
            cwd=PROJECT,
            env=environment | names | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # As a shell does that starts it in the background.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )

    yield start
    for process in processes_of(data_dir):
        process.kill()


def processes_of(data_dir: Path) -> list[psutil.Process]:
    """All living processes that were told of this data directory, by their environment or their command line."""
    found = []
    for process in psutil.process_iter():
        try:
            told = str(data_dir) in " ".join(process.cmdline()) or process.environ().get("LCM_DATA_DIR") == str(
                data_dir
            )
            if told and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def process_of(data_dir: Path, what: str) -> psutil.Process | None:
    """The first process with this in its command line, the parent before its children."""
    found = [process for process in processes_of(data_dir) if what in " ".join(process.cmdline())]
    return min(found, key=lambda process: process.pid, default=None)


def until_ready(running: "subprocess.Popen[str]") -> str:
    """What it says when it is ready."""
    while line := running.stdout.readline():
        if "ready" in line:
            return line
    raise AssertionError(running.stderr.read())


def answer(port: int, path: str) -> dict[str, object]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as response:
        return json.load(response)


def eventually(condition: Callable[[], bool], *, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)


def answers(port: int) -> bool:
    try:
        return answer(port, "readyz")["status"] == "ready"
    except OSError:
        return False


@pytest.mark.parametrize("request_to_stop", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_and_leaves_no_process_when_it_is_stopped(up, data_dir, port, request_to_stop):
    running = up()
    said = until_ready(running)
    ready = answer(port, "readyz")

    running.send_signal(request_to_stop)
    _, errors = running.communicate(timeout=60)

    assert f"http://127.0.0.1:{port}" in said
    assert ready == {"status": "ready", "missing": []}
    assert running.returncode == 0, errors
    assert processes_of(data_dir) == []


def test_a_killed_supervisor_leaves_no_process_either(up, data_dir):
    running = up()
    until_ready(running)

    running.kill()
    running.wait()

    eventually(lambda: processes_of(data_dir) == [])


def test_each_killed_process_is_replaced(up, data_dir, port):
    running = up()
    until_ready(running)
    victims = [process_of(data_dir, what) for what in (" web ", "worker compaction", "worker maintenance", ".keeper")]

    for victim in victims:
        victim.kill()

    eventually(lambda: answers(port))
    eventually(lambda: all(process_of(data_dir, f"worker {queue}") for queue in ("compaction", "maintenance")))
    assert not set(victims) & set(processes_of(data_dir))
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    assert processes_of(data_dir) == []


def test_web_and_workers_can_run_apart(up, data_dir, port):
    web = up("--no-worker")
    until_ready(web)
    workers = up("--no-web")
    until_ready(workers)

    commands = [" ".join(process.cmdline()) for process in processes_of(data_dir)]
    supervisors = {command.split("lcmsite.processes ")[1].split()[0] for command in commands if "processes" in command}

    for running in (web, workers):
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=60)
    assert supervisors == {str(web.pid), str(workers.pid)}
    assert sum("worker compaction" in command for command in commands) == 1
    assert processes_of(data_dir) == []


@pytest.mark.parametrize("place", ["database", "redis"])
def test_the_workers_take_what_is_put_into_their_queues(up, data_dir, place, request):
    redis_url = request.getfixturevalue("redis_url") if place == "redis" else ""
    running = up("--no-web", LCM_REDIS_URL=redis_url)
    until_ready(running)
    server = {"host": Location(data_dir).socket_dir, "port": PORT, "user": ROLE, "dbname": DATABASE}
    queues = [a_queue(name, redis_url=redis_url, connect=lambda: psycopg.connect(**server)) for name in QUEUES]

    for queue in queues:
        queue.task(name="nobody_knows_it")(lambda: None)()

    eventually(lambda: [queue.storage.queue_size() for queue in queues] == [0, 0])
    for queue in queues:
        queue.storage.close()
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=60)
    assert errors.count("nobody_knows_it") == 2
    assert processes_of(data_dir) == []


def test_a_port_in_use_is_told_at_once(up, data_dir, port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()

        _, errors = up().communicate(timeout=60)

    assert f"Cannot listen on 127.0.0.1 port {port}" in errors
    assert processes_of(data_dir) == []


def test_a_setting_that_is_wrong_is_told_before_anything_starts(up, data_dir):
    running = up(LCM_PROT="8000")

    said, errors = running.communicate(timeout=60)

    assert running.returncode == 1
    assert "Did you mean LCM_PORT?" in errors
    assert said == ""
    assert not EmbeddedPostgres(data_dir).is_running()

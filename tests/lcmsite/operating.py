"""`lcm up` as an operator runs it, from outside: its processes found, asked and waited for."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psutil


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
    found = [process for process in processes_of(data_dir) if what in _command(process)]
    return min(found, key=lambda process: process.pid, default=None)


def _command(process: psutil.Process) -> str:
    """Nothing of one that has ended meanwhile."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


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


def agents_are_served(port: int) -> bool:
    """Whether the tools are there: who comes without a key is told that it takes one."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/mcp", data=b"")
    try:
        urllib.request.urlopen(request, timeout=10).close()
    except urllib.error.HTTPError as refusal:
        return refusal.code == 401
    except OSError:
        # Nobody listens yet, or no longer.
        return False
    return False

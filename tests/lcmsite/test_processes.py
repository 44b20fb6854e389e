"""What one process of `lcm up` does on its own."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from tests.flows.processes import PROJECT, environment
from tests.lcmsite.operating import eventually, free_port


@pytest.mark.parametrize("kind", ["web", "mcp"])
def test_a_server_told_to_stop_while_its_workers_load_stops_with_them(data_dir, kind):
    # Nothing is asked of the database while all is loaded.
    given = {
        "LCM_DATA_DIR": str(data_dir),
        "LCM_SECRET_KEY": "s" * 50,
        "LCM_DATABASE_URL": "postgres://nobody@nowhere/x",
    }
    running = subprocess.Popen(
        [sys.executable, "-m", "lcmsite.processes", str(os.getpid()), kind, "127.0.0.1", str(free_port())],
        cwd=PROJECT,
        env=environment() | given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    server = psutil.Process(running.pid)
    eventually(lambda: server.children() != [])

    server.terminate()
    said, _ = running.communicate(timeout=60)

    assert running.returncode == 0, said
    assert "refused to gracefully stop" not in said

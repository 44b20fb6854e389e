"""What one process of `lcm up` does on its own."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest

from tests.flows.processes import environment, start_server
from tests.lcmsite.operating import free_port


@pytest.mark.parametrize("seconds", [0.3, 1.5])
@pytest.mark.parametrize("kind", ["web", "mcp"])
def test_a_server_that_is_stopped_while_it_loads_stops(data_dir, kind, seconds):
    # Nothing is asked of the database while all is loaded.
    given = {
        "LCM_DATA_DIR": str(data_dir),
        "LCM_SECRET_KEY": "s" * 50,
        "LCM_DATABASE_URL": "postgres://nobody@nowhere/x",
    }
    running = start_server(kind, free_port(), environment() | given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(seconds)

    running.terminate()

    said, _ = running.communicate(timeout=60)
    assert running.returncode == -signal.SIGTERM, said

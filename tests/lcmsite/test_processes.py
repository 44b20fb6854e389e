"""What one process of `lcm up` does on its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests.flows.processes import PROJECT, environment
from tests.lcmsite.operating import eventually, free_port

FORKS_A_WORKER_THAT_IS_TOLD_TO_STOP = """
import os, signal, time
from lcmsite.server.workers import forked

signal.signal(signal.SIGTERM, lambda *_: None)
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))
worker = forked(lambda: time.sleep(1))
print(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]))
"""


@pytest.mark.parametrize("kind", ["web", "mcp"])
def test_workers_that_are_told_to_stop_while_they_load_stop(data_dir, kind):
    # Nothing is asked of the database while all is loaded.
    given = {
        "LCM_DATA_DIR": str(data_dir),
        "LCM_SECRET_KEY": "s" * 50,
        "LCM_DATABASE_URL": "postgres://nobody@nowhere/x",
    }
    running = subprocess.Popen(
        [sys.executable, "-m", "lcmsite.ops.processes", str(os.getpid()), kind, "127.0.0.1", str(free_port())],
        cwd=PROJECT,
        env=environment() | given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    server = psutil.Process(running.pid)
    eventually(lambda: server.children() != [])
    workers = server.children()

    for worker in workers:
        worker.terminate()
    _, deaf = psutil.wait_procs(workers, timeout=60)

    server.terminate()
    said, _ = running.communicate(timeout=60)
    assert deaf == [], said


def test_a_worker_that_is_told_to_stop_in_the_moment_of_its_fork_stops():
    ran = subprocess.run(
        [sys.executable, "-c", FORKS_A_WORKER_THAT_IS_TOLD_TO_STOP],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert int(ran.stdout) == -signal.SIGTERM

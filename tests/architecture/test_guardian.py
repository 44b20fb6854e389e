"""Nothing of a run of the tests outlives it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lcmsite.operating import eventually, process_of, processes_of

PROJECT = Path(__file__).resolve().parents[2]
RUN = """
import time
from tests.guardian import a_directory, have_it_guarded
have_it_guarded()
data_dir = a_directory()
print(data_dir, flush=True)
from tests.flows.processes import start_worker
start_worker(data_dir=data_dir)
time.sleep(600)
"""


@pytest.mark.thorough
def test_a_killed_run_leaves_no_worker_no_server_and_no_directory_behind():
    run = subprocess.Popen([sys.executable, "-c", RUN], cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    data_dir = Path(run.stdout.readline().strip())
    try:
        eventually(lambda: process_of(data_dir, "bin/postgres") is not None)

        run.kill()

        run.communicate()
        eventually(lambda: processes_of(data_dir) == [])
        eventually(lambda: not data_dir.exists())
    finally:
        for process in processes_of(data_dir):
            process.kill()

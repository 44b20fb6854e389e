"""Nothing of a run of the tests outlives it."""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.lcmsite.operating import eventually, process_of, processes_of

PROJECT = Path(__file__).resolve().parents[2]
RUN = """
import sys, time
from tests.guardian import have_it_guarded
have_it_guarded()
from tests.flows.processes import start_worker
start_worker(data_dir=sys.argv[1])
time.sleep(600)
"""


def test_a_killed_run_leaves_no_worker_and_no_server_behind():
    with tempfile.TemporaryDirectory(prefix="lcm-guarded-", ignore_cleanup_errors=True) as data_dir:
        # Open to be entered: for root, the server runs as another user.
        Path(data_dir).chmod(0o711)
        run = subprocess.Popen([sys.executable, "-c", RUN, data_dir], cwd=PROJECT)
        try:
            eventually(lambda: process_of(Path(data_dir), "bin/postgres") is not None)

            run.kill()

            run.wait()
            eventually(lambda: processes_of(Path(data_dir)) == [])
        finally:
            for process in processes_of(Path(data_dir)):
                process.kill()

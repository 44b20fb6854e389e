"""The processes of `lcm up`, and their supervisor."""

import os
import signal
import subprocess
import time

import psutil
import pytest

from lcmsite.ops import supervisor as supervisor_module
from lcmsite.ops.supervisor import Process, ProcessKeepsDying, Supervisor
from tests.flows.processes import environment, start_server
from tests.lcmsite.operating import free_port


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "FIRST_PAUSE", 0.0)
    # On a busy machine, a process may take long to end.
    monkeypatch.setattr(supervisor_module, "SECONDS_OF_A_GOOD_START", 600.0)


def test_a_process_that_ends_whenever_it_is_started_is_given_up():
    supervisor = Supervisor([Process("nonsense", ("nonsense",))])

    with pytest.raises(ProcessKeepsDying, match="nonsense ended 5 times in a row with status 1"):
        while True:
            supervisor.poll()
            time.sleep(0.01)


def test_a_process_that_does_not_stop_is_killed_when_its_time_is_up():
    # It reads settings for a while before it listens to anybody, and is stopped dead in that.
    process = Process("stubborn", ("worker", "compaction"))
    supervisor = Supervisor([process], seconds_to_stop=0.5)
    supervisor.poll()
    child = psutil.Process(process.running.pid)
    child.suspend()

    supervisor.stop()

    assert not child.is_running()


def test_processes_run_in_groups_of_their_own_where_ctrl_c_does_not_reach_them():
    process = Process("worker", ("worker", "compaction"))
    supervisor = Supervisor([process])
    supervisor.poll()

    group = os.getpgid(process.running.pid)
    supervisor.stop()

    assert group == process.running.pid != os.getpgid(0)


@pytest.mark.thorough
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

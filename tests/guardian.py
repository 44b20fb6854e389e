"""End the processes that a killed test run or measurement leaves behind.

These are workers, sites, servers and browsers. Run as `python -m tests.guardian PID MARK`, it waits until the run ends.
Then it ends every process that has the run's mark in its environment (children inherit it), and removes the directories
that have the mark in their names.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

PROJECT = Path(__file__).resolve().parent.parent
NAME = "RUN_OF_TESTS"
SECONDS_TO_END = 10


def have_it_guarded() -> None:
    """Make all processes that this process starts end with it, even if it is killed."""
    mark = secrets.token_hex(4)
    subprocess.Popen(
        [sys.executable, "-m", "tests.guardian", str(os.getpid()), mark],
        cwd=PROJECT,
        # The guardian itself must not have a mark, neither of this run nor of a run that contains it.
        env={name: value for name, value in os.environ.items() if name != NAME},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # A session of its own: Ctrl-C, or a signal to the run's process group, does not reach the guardian.
        start_new_session=True,
    )
    os.environ[NAME] = mark


def a_directory() -> Path:
    """A new data directory for LCM, which is removed at the end of this run."""
    made = Path(tempfile.mkdtemp(prefix=_prefix(os.environ[NAME])))
    # Unlike pytest's directories, other users can enter it: if root runs the tests, the server runs as another user.
    made.chmod(0o711)
    return made


def _prefix(mark: str) -> str:
    # Keep it short: the path of a socket has at most about a hundred bytes.
    return f"lcm-{mark}-"


def marked(mark: str) -> list[psutil.Process]:
    """The running processes with this mark."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(NAME) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def end(mark: str) -> None:
    """Terminate all processes with this mark; kill those that take too long."""
    until = time.monotonic() + SECONDS_TO_END
    while left := marked(mark):
        for process in left:
            try:
                process.terminate() if time.monotonic() < until else process.kill()
            except psutil.NoSuchProcess:
                continue
        # Repeat the signals: a process that was only being started has not received the first one.
        psutil.wait_procs(left, timeout=1)


def main(run: str, mark: str) -> None:
    while os.getppid() == int(run):
        time.sleep(0.5)
    end(mark)
    for directory in Path(tempfile.gettempdir()).glob(_prefix(mark) + "*"):
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Ends what a run of the tests, or a measurement, leaves behind when it is killed: workers, sites, servers, browsers.

Run as `python -m tests.guardian PID MARK`: it waits for the end of the run, ends every process that has the mark of the
run in its environment, as children inherit it, and removes the directories that have it in their names.
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
    """From now on, what this process starts ends with it, however that ends."""
    mark = secrets.token_hex(4)
    subprocess.Popen(
        [sys.executable, "-m", "tests.guardian", str(os.getpid()), mark],
        cwd=PROJECT,
        # It has not the mark of this run, nor of one that this is a part of.
        env={name: value for name, value in os.environ.items() if name != NAME},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Neither Ctrl-C nor who kills the run's group reaches it.
        start_new_session=True,
    )
    os.environ[NAME] = mark


def a_directory() -> Path:
    """A new directory for what LCM keeps, which goes with this run at the latest."""
    made = Path(tempfile.mkdtemp(prefix=_prefix(os.environ[NAME])))
    # Open to be entered, unlike pytest's own: for root, the server runs as another user.
    made.chmod(0o711)
    return made


def _prefix(mark: str) -> str:
    # Short: the path of a socket has a hundred bytes.
    return f"lcm-{mark}-"


def marked(mark: str) -> list[psutil.Process]:
    """The living processes with this mark."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(NAME) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def end(mark: str) -> None:
    """Have them all end: in good order, and after some seconds whether they like it or not."""
    until = time.monotonic() + SECONDS_TO_END
    while left := marked(mark):
        for process in left:
            try:
                process.terminate() if time.monotonic() < until else process.kill()
            except psutil.NoSuchProcess:
                continue
        # Asked again: one that was about to be started has heard nothing.
        psutil.wait_procs(left, timeout=1)


def main(run: str, mark: str) -> None:
    while os.getppid() == int(run):
        time.sleep(0.5)
    end(mark)
    for directory in Path(tempfile.gettempdir()).glob(_prefix(mark) + "*"):
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

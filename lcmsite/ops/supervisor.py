"""Keep processes running: restart those that die, and leave none behind."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

import structlog
from django.conf import settings

from lcmsite.ops.metrics.directory import environment_to_count

logger = structlog.get_logger(__name__)

# If a process ends within this time after its start, the start was bad. After BAD_STARTS in a row, `lcm up` gives up.
SECONDS_OF_A_GOOD_START = 10.0
BAD_STARTS = 5
FIRST_PAUSE = 0.25


class ProcessKeepsDying(Exception):
    """A process ended too often in a row soon after its start."""


@dataclass
class Process:
    """One process to keep running, and its starts so far."""

    name: str
    arguments: Sequence[str]
    # A server's listening socket, inherited by the process; its descriptor is the last argument.
    listener: socket.socket | None = None
    # Where its stdout and stderr go; None: to those of this process.
    output: IO[str] | None = None
    running: "subprocess.Popen[bytes] | None" = None
    started_at: float = 0.0
    next_start_at: float = 0.0
    bad_starts: int = 0

    def start(self) -> None:
        descriptors = [self.listener.fileno()] if self.listener else []
        command = [sys.executable, "-m", "lcmsite.ops.processes", str(os.getpid()), *self.arguments]
        python_path = filter(None, [str(settings.BASE_DIR), os.environ.get("PYTHONPATH")])
        self.started_at = time.monotonic()
        self.running = subprocess.Popen(
            [*command, *map(str, descriptors)],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.output,
            # PYTHONPATH finds the module, as the working directory must stay: LCM_DATA_DIR may be relative to it.
            env=environment_to_count() | {"PYTHONPATH": os.pathsep.join(python_path)},
            # A process group of its own: Ctrl-C reaches only the supervisor, and the group finds leftover children.
            start_new_session=True,
        )

    def poll(self) -> None:
        """Start the process if that is due; if it has died, schedule the next start."""
        if self.running is None:
            if time.monotonic() >= self.next_start_at:
                self.start()
        elif (status := self.running.poll()) is not None:
            self._sweep_up()
            self.running = None
            good = time.monotonic() - self.started_at >= SECONDS_OF_A_GOOD_START
            self.bad_starts = 0 if good else self.bad_starts + 1
            logger.error("process_ended", process=self.name, exit_status=status)
            if self.bad_starts >= BAD_STARTS:
                raise ProcessKeepsDying(f"{self.name} ended {self.bad_starts} times in a row with status {status}.")
            self.next_start_at = time.monotonic() + FIRST_PAUSE * 2**self.bad_starts

    def ask_to_stop(self) -> None:
        if self.listener is not None:
            self.listener.close()
        if self.running is not None:
            self.running.terminate()

    def wait(self, *, until: float) -> None:
        """Wait for the process to end, and kill it when the time is up."""
        if self.running is None:
            return
        try:
            self.running.wait(timeout=max(0.0, until - time.monotonic()))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            # A second Ctrl-C, or a task that takes too long.
            logger.warning("process_killed", process=self.name)
        self._sweep_up()
        self.running.wait()

    def _sweep_up(self) -> None:
        """Kill what is left of the process group."""
        assert self.running is not None
        try:
            os.killpg(self.running.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


@dataclass
class Supervisor:
    """The processes of one `lcm up`."""

    processes: Sequence[Process]
    seconds_to_stop: float = 40.0
    stopping: bool = field(default=False, init=False)

    def poll(self) -> None:
        """Start what is due; raises ProcessKeepsDying if a process keeps ending."""
        for process in self.processes:
            process.poll()

    def stop(self) -> None:
        """Stop all processes together; kill those that take too long."""
        until = time.monotonic() + self.seconds_to_stop
        for process in self.processes:
            process.ask_to_stop()
        for process in self.processes:
            process.wait(until=until)

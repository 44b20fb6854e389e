"""Leases on the embedded PostgreSQL: the server runs while any process has one."""

import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from lcmsite.embedded_postgres.location import (
    DATABASE,
    PORT,
    REFUGE,
    ROLE,
    EmbeddedPostgresError,
    Location,
    could_lock,
    make_directory,
    open_lock_file,
    try_lock,
)

# A first start creates the cluster; a start after a crash replays the write-ahead log.
SECONDS_TO_START = 300
SECONDS_TO_STOP = 60

PROJECT = Path(__file__).resolve().parents[2]

LEASES: dict[Path, int] = {}
"""By data directory: the descriptor of the lock file that is this process's lease."""
_holding = threading.Lock()

# Keepers started here, with their data directories: polling them reaps those that have ended.
_keepers: "list[tuple[Path, subprocess.Popen[bytes]]]" = []

CONNECTIONS_EXHAUSTED = ("too many clients already", "remaining connection slots are reserved")


@dataclass(frozen=True)
class EmbeddedPostgres:
    """The server of one data directory, started and stopped by its leases."""

    data_dir: Path
    durable: bool = True
    refuge: Path = REFUGE
    # If its disk has fewer free bytes than this, the server is read-only; 0 for no limit.
    min_free: int = 0

    @property
    def location(self) -> Location:
        return Location(self.data_dir)

    @contextmanager
    def lease(self) -> Iterator[None]:
        """Hold a lease in the block; at the end of the last one, wait for the stop."""
        self.hold()
        try:
            yield
        finally:
            self.let_go()

    def hold(self) -> None:
        """Take this process's lease, unless it has one; it ends with the process."""
        with _holding:
            if self.data_dir in LEASES:
                return
            descriptor = self._take_lock()
            try:
                self.ensure_running()
            except BaseException:
                os.close(descriptor)
                # Wait until the server that was being started has stopped again.
                self._wait_for_stop()
                raise
            LEASES[self.data_dir] = descriptor

    def let_go(self) -> None:
        """End this process's lease; if it is the last, wait until the server has stopped."""
        with _holding:
            if self.data_dir in LEASES:
                os.close(LEASES.pop(self.data_dir))
                self._wait_for_stop()

    def is_running(self) -> bool:
        """Whether the server accepts connections, or all of them are in use."""
        try:
            psycopg.connect(
                host=str(self.location.socket_dir), port=PORT, user=ROLE, dbname=DATABASE, connect_timeout=5
            ).close()
        except psycopg.OperationalError as refusal:
            # psycopg has no error code for a refused connection; our server's messages are always in English.
            return any(each in str(refusal) for each in CONNECTIONS_EXHAUSTED)
        return True

    def has_keeper(self) -> bool:
        """Whether a keeper runs; opens no connection."""
        return not could_lock(self.location.keeper_lock, fcntl.LOCK_SH)

    def ensure_running(self) -> None:
        """Wait until the server accepts connections; start it if necessary.

        Call it only while holding a lease. Raises EmbeddedPostgresError if the server cannot be started.
        """
        deadline = time.monotonic() + SECONDS_TO_START
        keeper: subprocess.Popen[bytes] | None = None
        while not self.is_running():
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"PostgreSQL did not start: see {self.location.cluster / 'log'}.")
            status = keeper.poll() if keeper else 0
            if status:
                raise EmbeddedPostgresError(self._keeper_messages())
            # A keeper that found another one running ends with status 0, too.
            if status == 0 and not self.has_keeper():
                keeper = self._start_keeper()
            time.sleep(0.02)

    def _take_lock(self) -> int:
        make_directory(self.location.home)
        descriptor = open_lock_file(self.location.lease)
        # Blocks while a keeper is stopping the server because the last lease has ended.
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor

    def _start_keeper(self) -> "subprocess.Popen[bytes]":
        _keepers[:] = [started for started in _keepers if started[1].poll() is None]
        durability = "durable" if self.durable else "careless"
        arguments = [str(self.data_dir), str(self.refuge), str(self.min_free), durability]
        with self.location.keeper_log.open("ab") as log:
            keeper = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.keeper", *arguments],
                # Do not inherit the caller's output: a program that reads it would wait until the keeper ends.
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # So that the module is found even if LCM is not installed.
                cwd=PROJECT,
                start_new_session=True,
            )
        _keepers.append((self.data_dir, keeper))
        return keeper

    def _keeper_messages(self) -> str:
        lines = self.location.keeper_log.read_text(errors="replace").splitlines()
        # Leave out the line that the server writes at each start: that it redirects its log.
        return (
            "\n".join(line for line in lines if "redirecting log output" not in line)
            or "The embedded PostgreSQL did not start."
        )

    def _wait_for_stop(self) -> None:
        """Wait until the server is down; return at once if another process has a lease."""
        deadline = time.monotonic() + SECONDS_TO_STOP
        while time.monotonic() < deadline:
            probe = open_lock_file(self.location.lease)
            try:
                is_free = try_lock(probe, fcntl.LOCK_EX)
                if not is_free and try_lock(probe, fcntl.LOCK_SH):
                    return
            finally:
                os.close(probe)
            # A keeper that has just been started holds no lock yet.
            is_starting = any(of == self.data_dir and keeper.poll() is None for of, keeper in _keepers)
            if is_free and not is_starting and not self.has_keeper():
                return
            time.sleep(0.02)

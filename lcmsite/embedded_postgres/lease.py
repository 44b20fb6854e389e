"""A lease on the embedded PostgreSQL: while anybody holds one, the server runs."""

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

# A first start makes the cluster; a start after a crash repeats what the log holds.
SECONDS_TO_START = 300
SECONDS_TO_STOP = 60

PROJECT = Path(__file__).resolve().parents[2]

LEASES: dict[Path, int] = {}
"""The lease of this process on the server of each data directory: the descriptor that holds it."""
_holding = threading.Lock()

# Kept, so that a keeper that ended before us is reaped instead of staying a zombie; by data directory.
_keepers: "list[tuple[Path, subprocess.Popen[bytes]]]" = []

ALL_TAKEN = ("too many clients already", "remaining connection slots are reserved")


@dataclass(frozen=True)
class EmbeddedPostgres:
    """The server of one data directory, started and stopped by its leases."""

    data_dir: Path
    durable: bool = True
    refuge: Path = REFUGE
    # With less room than this on its disk the server only reads; 0 for no such bound.
    min_free: int = 0

    @property
    def location(self) -> Location:
        return Location(self.data_dir)

    @contextmanager
    def lease(self) -> Iterator[None]:
        """Hold a lease within the block; after the last one the server has stopped."""
        self.hold()
        try:
            yield
        finally:
            self.let_go()

    def hold(self) -> None:
        """Take this process's lease, if not held; it ends with the process at last."""
        with _holding:
            if self.data_dir in LEASES:
                return
            descriptor = self._take()
            try:
                self.ensure_running()
            except BaseException:
                os.close(descriptor)
                # What was begun to be started is not left to end by itself, out of sight.
                self._see_it_stop()
                raise
            LEASES[self.data_dir] = descriptor

    def let_go(self) -> None:
        """Give this process's lease back; after the last, the server is down."""
        with _holding:
            if self.data_dir in LEASES:
                os.close(LEASES.pop(self.data_dir))
                self._see_it_stop()

    def is_running(self) -> bool:
        """Whether the server accepts connections, or has given out all of them."""
        try:
            psycopg.connect(
                host=str(self.location.socket_dir), port=PORT, user=ROLE, dbname=DATABASE, connect_timeout=5
            ).close()
        except psycopg.OperationalError as refusal:
            # The driver has no code of a refused connection, and our server says it in no other language.
            return any(each in str(refusal) for each in ALL_TAKEN)
        return True

    def has_keeper(self) -> bool:
        """Whether a keeper runs; needs no connection."""
        return not could_lock(self.location.keeper_lock, fcntl.LOCK_SH)

    def ensure_running(self) -> None:
        """Wait until the server accepts connections; start it if necessary.

        For holders of a lease. EmbeddedPostgresError if it cannot be started.
        """
        deadline = time.monotonic() + SECONDS_TO_START
        keeper: subprocess.Popen[bytes] | None = None
        while not self.is_running():
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"PostgreSQL did not start: see {self.location.cluster / 'log'}.")
            status = keeper.poll() if keeper else 0
            if status:
                raise EmbeddedPostgresError(self._keeper_messages())
            # Status 0 is also that of a keeper that found another at work.
            if status == 0 and not self.has_keeper():
                keeper = self._start_keeper()
            time.sleep(0.02)

    def _take(self) -> int:
        make_directory(self.location.home)
        descriptor = open_lock_file(self.location.lease)
        # Waits while a keeper stops the server that the last user before us has left.
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor

    def _start_keeper(self) -> "subprocess.Popen[bytes]":
        _keepers[:] = [started for started in _keepers if started[1].poll() is None]
        durability = "durable" if self.durable else "careless"
        arguments = [str(self.data_dir), str(self.refuge), str(self.min_free), durability]
        with self.location.keeper_log.open("ab") as log:
            keeper = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.keeper", *arguments],
                # Not the caller's output: whoever reads that would wait for the server to end.
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Where the module is found, installed or not.
                cwd=PROJECT,
                start_new_session=True,
            )
        _keepers.append((self.data_dir, keeper))
        return keeper

    def _keeper_messages(self) -> str:
        lines = self.location.keeper_log.read_text(errors="replace").splitlines()
        # At each start the server tells that it goes on in a log of its own.
        return (
            "\n".join(line for line in lines if "redirecting log output" not in line)
            or "The embedded PostgreSQL did not start."
        )

    def _see_it_stop(self) -> None:
        """Return when the server is down, or at once when somebody else still uses it."""
        deadline = time.monotonic() + SECONDS_TO_STOP
        while time.monotonic() < deadline:
            probe = open_lock_file(self.location.lease)
            try:
                is_free = try_lock(probe, fcntl.LOCK_EX)
                if not is_free and try_lock(probe, fcntl.LOCK_SH):
                    return
            finally:
                os.close(probe)
            # A keeper that has only just been started holds nothing yet.
            is_starting = any(of == self.data_dir and keeper.poll() is None for of, keeper in _keepers)
            if is_free and not is_starting and not self.has_keeper():
                return
            time.sleep(0.02)

"""The keeper: a process that runs the embedded server while any lease is held.

Run as `python -m lcmsite.embedded_postgres.keeper DATA_DIR REFUGE MIN_FREE durable`, or `careless` for tests, which may
lose data in a power failure; it needs only the standard library. Exit status 0: the server was shut down, or another
keeper is running. 1: it cannot run; the keeper's log has the reason.
"""

import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from lcmsite.embedded_postgres.cluster import Cluster
from lcmsite.embedded_postgres.location import EmbeddedPostgresError, Location, open_lock_file, try_lock
from lcmsite.embedded_postgres.space import Space

# How long to wait for processes of a killed server: each ends after its statement, and no statement may run this long.
SECONDS_FOR_OLD_PROCESSES = 120

# If the server ends within this time after its start, BAD_STARTS times in a row, the keeper does not start it again.
SECONDS_OF_A_GOOD_START = 10
BAD_STARTS = 3

# Short enough: between two checks, a disk filled at full speed loses less space than PostgreSQL has preallocated.
SECONDS_BETWEEN_LOOKS = 0.25

# Matches fatal errors of the server, but not the messages to clients that connect while it starts.
_REASON = re.compile(r"(?:FATAL|PANIC):  (?!the database system is )(.+)")


@dataclass
class Keeper:
    """Starts, restarts and stops the server; makes it read-only on a full disk."""

    cluster: Cluster
    space: Space
    stopping: threading.Event = field(default_factory=threading.Event)
    server: "subprocess.Popen[bytes] | None" = None

    def run(self) -> None:
        """Run the server until `stop`. Raises EmbeddedPostgresError if it keeps ending."""
        bad_starts = 0
        threading.Thread(target=self._watch_space, daemon=True).start()
        while not self.stopping.is_set():
            started = time.monotonic()
            self.server = self._start()
            if self.stopping.is_set():
                self.stop()
            status = self.server.wait()
            if self.stopping.is_set():
                return
            bad_starts = bad_starts + 1 if time.monotonic() - started < SECONDS_OF_A_GOOD_START else 0
            if bad_starts == BAD_STARTS:
                log = self.cluster.location.cluster / "log"
                raise EmbeddedPostgresError(
                    f"PostgreSQL ended {bad_starts} times with status {status}{_last_reason(log)}: see {log}."
                )

    def stop(self) -> None:
        """Request a fast shutdown, then an immediate one, then kill the server."""
        self.stopping.set()
        server = self.server
        if server is None:
            return
        # Fast shutdown, immediate shutdown, kill. After the last two, the next start recovers from the write-ahead log.
        for request, patience in ((signal.SIGINT, 60), (signal.SIGQUIT, 10), (signal.SIGKILL, 10)):
            server.send_signal(request)
            try:
                server.wait(timeout=patience)
            except subprocess.TimeoutExpired:
                continue
            return

    def _watch_space(self) -> None:
        while not self.stopping.wait(SECONDS_BETWEEN_LOOKS):
            if self.space.check():
                self.space.write_down()
                if self.server is not None and self.server.poll() is None:
                    self.server.send_signal(signal.SIGHUP)

    def _start(self) -> "subprocess.Popen[bytes]":
        lock = open_lock_file(self.cluster.location.server_lock)
        try:
            if not try_lock(lock, fcntl.LOCK_EX, within=SECONDS_FOR_OLD_PROCESSES):
                raise EmbeddedPostgresError("Processes of an earlier server are still at work: end them.")
            self.space.prepare(owner=(self.cluster.account.uid, self.cluster.account.gid))
            return self.cluster.start(lock=lock)
        finally:
            os.close(lock)


def _last_reason(log: Path) -> str:
    """Return the server's last logged reason for ending, such as a full disk."""
    newest = max(log.glob("*.log"), key=lambda file: file.stat().st_mtime, default=None)
    reasons = _REASON.findall(newest.read_text(errors="replace")) if newest else []
    return f" ({reasons[-1]})" if reasons else ""


def run_while_leased(location: Location, cluster: Cluster, *, min_free: int) -> None:
    """Run the server until its last lease ends or SIGTERM arrives."""
    keeper = Keeper(cluster=cluster, space=Space(location.cluster.resolve(), min_free))
    lease = open_lock_file(location.lease)

    def stop_when_all_have_left() -> None:
        # Keep this lock until the process ends: a process that wants a lease waits for it, then starts another keeper.
        fcntl.flock(lease, fcntl.LOCK_EX)
        keeper.stop()

    threading.Thread(target=stop_when_all_have_left, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=keeper.stop).start())
    keeper.run()
    cluster.remove_socket_directory()


def main(data_dir: str, refuge: str, min_free: str, durability: str) -> None:
    # The server's user must be able to read files created here; private ones set their own mode.
    os.umask(0o022)
    # This process may outlive the one that started it, whose working directory must not stay in use.
    os.chdir("/")
    location = Location(Path(data_dir))
    if not try_lock(open_lock_file(location.keeper_lock), fcntl.LOCK_EX):
        # Another keeper is running.
        return
    # Empty the log: its lines are of earlier keepers.
    os.ftruncate(sys.stderr.fileno(), 0)
    try:
        cluster = Cluster.prepare(location, durable=durability == "durable", refuge=Path(refuge))
        run_while_leased(location, cluster, min_free=int(min_free))
    except EmbeddedPostgresError as refusal:
        sys.exit(str(refusal))


if __name__ == "__main__":
    main(*sys.argv[1:])

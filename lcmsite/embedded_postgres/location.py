"""The paths of an embedded PostgreSQL, computed from the data directory.

<data>/postgres/            locks and the keeper's log, owned by the user that runs LCM
<data>/postgres/server/     files of the server's own user; a link if that user cannot enter this directory
    cluster/                the data (PGDATA), with PostgreSQL's log in cluster/log/
    socket/                 the Unix socket, the only way to connect
"""

import fcntl
import hashlib
import os
import time
from pathlib import Path

ROLE = DATABASE = "lcm"

# Used only in the name of the socket file: the server listens on no network address.
PORT = 5432

# Some systems limit a socket's whole path to 103 bytes, of which the file name needs up to 20.
LONGEST_SOCKET_DIRECTORY = 80

# Not TMPDIR: every process must compute the same path.
SHORT_ROOT = Path("/tmp")

# For the server's files, if root runs LCM in a directory (such as /root) that no other user can enter.
REFUGE = Path("/var/lib/lcm")


class EmbeddedPostgresError(RuntimeError):
    """The embedded server cannot be used; the message says why and what to do."""


class Location:
    """The paths of one embedded server."""

    def __init__(self, data_dir: Path) -> None:
        # A short, unique name of this data directory, for paths in shared directories.
        self.digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
        self.home = data_dir / "postgres"
        # Each process with a lease holds a shared lock; the keeper takes the exclusive lock when no lease is left.
        self.lease = self.home / "lease"
        # Locked by the keeper while it runs.
        self.keeper_lock = self.home / "keeper.lock"
        # Locked by the server's processes; free when the last of them has ended.
        self.server_lock = self.home / "server.lock"
        self.keeper_log = self.home / "keeper.log"
        self.server = self.home / "server"
        self.cluster = self.server / "cluster"
        self.socket_dir = self.server / "socket"
        # libpq takes a comma as a separator of hosts.
        if len(os.fsencode(self.socket_dir)) > LONGEST_SOCKET_DIRECTORY or "," in str(self.socket_dir):
            self.socket_dir = SHORT_ROOT / f"lcm-{self.digest}"


def make_directory(path: Path) -> None:
    """Create a directory and its parents with mode 755, whatever the umask."""
    for missing in reversed([directory for directory in (path, *path.parents) if not directory.exists()]):
        missing.mkdir(exist_ok=True)
        missing.chmod(0o755)


def open_lock_file(path: Path) -> int:
    """Open a file for locking; a lock ends when all copies of the descriptor close."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(descriptor: int, mode: int, *, within: float = 0.0) -> bool:
    """Try to lock for `within` seconds; return whether the lock was granted."""
    deadline = time.monotonic() + within
    while True:
        try:
            fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        else:
            return True


def could_lock(path: Path, mode: int) -> bool:
    """Whether the lock could be taken now; it is released again."""
    descriptor = open_lock_file(path)
    try:
        return try_lock(descriptor, mode)
    finally:
        os.close(descriptor)

"""The paths of an embedded PostgreSQL, computed from the data directory.

<data>/postgres/            locks and the keeper's log, owned by whoever runs LCM
<data>/postgres/server/     what the server's own user must reach; a link when that user cannot come here
    cluster/                the data (PGDATA), with PostgreSQL's log in cluster/log/
    socket/                 the only way in
"""

import fcntl
import hashlib
import os
import time
from pathlib import Path

ROLE = DATABASE = "lcm"

# Only the name of the socket file: the server listens on no network address.
PORT = 5432

# A socket's whole path has to fit into 103 bytes on some systems; the file name takes up to 20 of them.
LONGEST_SOCKET_DIRECTORY = 80

# Not the directory that TMPDIR names: every process has to come to the same path.
SHORT_ROOT = Path("/tmp")

# Where the server's files go when root runs LCM in a place (such as /root) that no other user can enter.
REFUGE = Path("/var/lib/lcm")


class EmbeddedPostgresError(RuntimeError):
    """The embedded server cannot be used; the text says why and what to do."""


class Location:
    """The paths of one embedded server."""

    def __init__(self, data_dir: Path) -> None:
        # A short name for this data directory, for places that are shared with others.
        self.digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
        self.home = data_dir / "postgres"
        # Locked shared by each user, exclusively by the keeper after the last.
        self.lease = self.home / "lease"
        # Locked by the one keeper at work.
        self.keeper_lock = self.home / "keeper.lock"
        # Locked by all processes of the server; free when none is left.
        self.server_lock = self.home / "server.lock"
        self.keeper_log = self.home / "keeper.log"
        self.server = self.home / "server"
        self.cluster = self.server / "cluster"
        self.socket_dir = self.server / "socket"
        # libpq reads a comma as the start of another host.
        if len(os.fsencode(self.socket_dir)) > LONGEST_SOCKET_DIRECTORY or "," in str(self.socket_dir):
            self.socket_dir = SHORT_ROOT / f"lcm-{self.digest}"


def make_directory(path: Path) -> None:
    """Create a directory and its parents, passable whatever the umask is."""
    for missing in reversed([directory for directory in (path, *path.parents) if not directory.exists()]):
        missing.mkdir(exist_ok=True)
        missing.chmod(0o755)


def open_lock_file(path: Path) -> int:
    """A descriptor for locks on this file; its last copy ends them."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(descriptor: int, mode: int, *, within: float = 0.0) -> bool:
    """Whether the lock was granted within some seconds."""
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
    """Whether the lock would be granted at this moment; it is not kept."""
    descriptor = open_lock_file(path)
    try:
        return try_lock(descriptor, mode)
    finally:
        os.close(descriptor)

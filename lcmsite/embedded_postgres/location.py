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
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Location:
    """The paths of one embedded server."""

    data_dir: Path

    @property
    def home(self) -> Path:
        return self.data_dir / "postgres"

    @property
    def lease(self) -> Path:
        """Locked shared by each user, exclusively by the keeper after the last."""
        return self.home / "lease"

    @property
    def keeper_lock(self) -> Path:
        """Locked by the one keeper at work."""
        return self.home / "keeper.lock"

    @property
    def server_lock(self) -> Path:
        """Locked by all processes of the server; free when none is left."""
        return self.home / "server.lock"

    @property
    def keeper_log(self) -> Path:
        return self.home / "keeper.log"

    @property
    def server(self) -> Path:
        return self.home / "server"

    @property
    def cluster(self) -> Path:
        return self.server / "cluster"

    @property
    def socket_dir(self) -> Path:
        beside = self.server / "socket"
        # libpq reads a comma as the start of another host.
        if len(os.fsencode(beside)) <= LONGEST_SOCKET_DIRECTORY and "," not in str(beside):
            return beside
        return SHORT_ROOT / f"lcm-{self.digest}"

    @property
    def digest(self) -> str:
        """A short name for this data directory, for places that are shared with others."""
        return hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:16]


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

"""Where an embedded PostgreSQL lives, computed from the data directory alone: settings name it before it runs.

<data>/postgres/            locks and the keeper's log, owned by whoever runs LCM
<data>/postgres/server/     what the server's own user must reach; a link when that user cannot come here
    cluster/                the data (PGDATA), with PostgreSQL's log in cluster/log/
    socket/                 the only way in
"""

import hashlib
import os
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
        """Locked shared by every user of the server, exclusively by the keeper once all have left."""
        return self.home / "lease"

    @property
    def keeper_lock(self) -> Path:
        """Locked by the one keeper at work."""
        return self.home / "keeper.lock"

    @property
    def server_lock(self) -> Path:
        """Locked by the server's processes together: free means that not one of them is left."""
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
    """Make a directory with those above it, open to be entered: the umask may be stricter than LCM can use."""
    for missing in reversed([directory for directory in (path, *path.parents) if not directory.exists()]):
        missing.mkdir(exist_ok=True)
        missing.chmod(0o755)

"""The system user that PostgreSQL runs as: never root."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcmsite.embedded_postgres.location import EmbeddedPostgresError

UNPRIVILEGED = "nobody"


@dataclass(frozen=True)
class Account:
    """A system user, and how this process acts as that user."""

    uid: int
    gid: int
    name: str

    @classmethod
    def of_server(cls, cluster: Path) -> "Account":
        """Return the current user; for root, the cluster's owner or an unprivileged one."""
        owner = cluster.stat().st_uid if cluster.exists() else None
        if os.geteuid() != 0:
            if owner not in (None, os.geteuid()):
                raise EmbeddedPostgresError(f"{cluster} belongs to {_name(owner)}: run LCM as that user.")
            return cls(uid=os.geteuid(), gid=os.getegid(), name=_name(os.geteuid()))
        # If root owns the cluster, root copied it, for example from a backup: the unprivileged user gets it back.
        entry = pwd.getpwuid(owner) if owner else pwd.getpwnam(UNPRIVILEGED)
        return cls(uid=entry.pw_uid, gid=entry.pw_gid, name=entry.pw_name)

    @property
    def is_another(self) -> bool:
        return self.uid != os.geteuid()

    def process_arguments(self) -> dict[str, Any]:
        """Return arguments for `subprocess` that run a program as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.is_another else {}

    def can_enter(self, path: Path) -> bool:
        """Whether this user can reach and enter the directory or program."""
        # Test it as that user: permission bits alone would miss access lists and mount options.
        test = ["/bin/sh", "-c", 'test -x "$1"', "sh", str(path)]
        return subprocess.run(test, cwd="/", check=False, **self.process_arguments()).returncode == 0

    def take_ownership(self, path: Path) -> None:
        """Make this user the owner of a directory and all in it."""
        if self.is_another:
            for directory, _, files in os.walk(path):
                os.chown(directory, self.uid, self.gid)
                for name in files:
                    os.chown(Path(directory) / name, self.uid, self.gid, follow_symlinks=False)


def _name(uid: int | None) -> str:
    try:
        return pwd.getpwuid(uid or 0).pw_name
    except KeyError:
        raise EmbeddedPostgresError(
            f"The user id {uid} has no name on this machine, which PostgreSQL requires:"
            " add it to /etc/passwd, or set LCM_DATABASE_URL."
        ) from None

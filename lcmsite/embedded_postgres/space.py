"""Make the embedded server read-only before its disk is full.

PostgreSQL ends when it cannot extend its log. So the server is made read-only while there is still room, by a file that
its configuration includes; and a reserve is kept on the disk, which is given up for the server's own needs when
somebody else fills the disk at once.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

# Four segments of PostgreSQL's log: enough to end what is under way, and to recover after a crash.
RESERVE_BYTES = 64 * 1024**2

# Writing begins again when there is so much more room than it takes to stop it.
_PART_TO_RESUME = 4

CONFIGURATION = "lcm_space.conf"
INCLUDE = f"include_if_exists = '{CONFIGURATION}'\n"

# Of one length, so that the file is overwritten in place: a full disk may have no room for another.
_READ_WRITE = b"default_transaction_read_only = off\n"
_READ_ONLY = b"default_transaction_read_only = on \n"


@dataclass
class Space:
    """Watches the disk that a cluster lies on; with `min_free` 0 it does nothing."""

    cluster: Path
    min_free: int
    is_short: bool = False

    @property
    def reserve(self) -> Path:
        return self.cluster.with_name("reserve")

    def prepare(self, *, owner: tuple[int, int]) -> None:
        """Before a start of the server: have its configuration say whether it may write."""
        if not self.min_free:
            # As it may have been left by a start with another setting.
            self.reserve.unlink(missing_ok=True)
        self.look()
        self.write_down()
        os.chown(self._configuration, *owner)
        main = self.cluster / "postgresql.conf"
        if INCLUDE not in main.read_text():
            with main.open("a") as file:
                file.write(f"\n{INCLUDE}")

    def look(self) -> bool:
        """Adapt the reserve; return whether the server's mode must change."""
        if not self.min_free:
            return False
        free, held = self._free(), self._held()
        # What would be left with the whole reserve on the disk.
        room = free + held - RESERVE_BYTES
        was_short = self.is_short
        if room < self.min_free:
            self.is_short = True
        elif room >= self.min_free + self.min_free // _PART_TO_RESUME:
            self.is_short = False
        if free < RESERVE_BYTES and held:
            os.truncate(self.reserve, 0)
        elif not self.is_short and not held:
            self._hold()
        return self.is_short != was_short

    def write_down(self) -> None:
        """Write the mode into the server's configuration, to be reloaded."""
        descriptor = os.open(self._configuration, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, _READ_ONLY if self.is_short else _READ_WRITE)
        finally:
            os.close(descriptor)

    @property
    def _configuration(self) -> Path:
        return self.cluster / CONFIGURATION

    def _free(self) -> int:
        disk = os.statvfs(self.cluster)
        return disk.f_bavail * disk.f_frsize

    def _held(self) -> int:
        return self.reserve.stat().st_size if self.reserve.exists() else 0

    def _hold(self) -> None:
        descriptor = os.open(self.reserve, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
        except OSError:
            # Another program has taken the space.
            os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)

"""Make the embedded server read-only before its disk is full.

PostgreSQL crashes if it cannot extend its write-ahead log. So the server is made read-only while there is still space,
by a file that its configuration includes. There is also a reserve file: if another program fills the disk, the file is
emptied, so that the server has space for its own needs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

# Four segments of the write-ahead log: enough to finish running transactions, and to recover after a crash.
RESERVE_BYTES = 64 * 1024**2

# Writing resumes when free space exceeds `min_free` by this part (1/n) of it.
_PART_TO_RESUME = 4

CONFIGURATION = "lcm_space.conf"
INCLUDE = f"include_if_exists = '{CONFIGURATION}'\n"

# Of equal length, so that the file is overwritten in place: a full disk may have no room for a new one.
_READ_WRITE = b"default_transaction_read_only = off\n"
_READ_ONLY = b"default_transaction_read_only = on \n"


@dataclass
class Space:
    """Watches the free space on a cluster's disk; with `min_free` 0 it does nothing."""

    cluster: Path
    min_free: int
    is_short: bool = False

    @property
    def reserve(self) -> Path:
        return self.cluster.with_name("reserve")

    def prepare(self, *, owner: tuple[int, int]) -> None:
        """Write the mode into the configuration; call it before the server starts."""
        if not self.min_free:
            # An earlier run with another setting may have left the reserve file.
            self.reserve.unlink(missing_ok=True)
        self.check()
        self.write_down()
        os.chown(self._configuration, *owner)
        main = self.cluster / "postgresql.conf"
        if INCLUDE not in main.read_text():
            with main.open("a") as file:
                file.write(f"\n{INCLUDE}")

    def check(self) -> bool:
        """Check free space and adapt the reserve; return whether `is_short` has changed."""
        if not self.min_free:
            return False
        free, held = self._free(), self._held()
        # The bytes that would be free if the whole reserve were on the disk.
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
        """Write the mode into the configuration; it takes effect on reload (SIGHUP)."""
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

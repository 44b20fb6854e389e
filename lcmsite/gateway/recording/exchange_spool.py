"""Exchanges that could not be recorded, as files in order, within a bound."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

_ENDING = ".exchange"
# What no attempt can record is put aside, within the same bound.
_REJECTED = "rejected"


class SpoolFull(OSError):
    """The spool has as much as it may have."""


@dataclass(frozen=True)
class Spool:
    """A directory of exchanges; all of it is safe to call from any thread."""

    directory: Path
    most_bytes: int

    def add(self, data: bytes, *, received_at: datetime) -> None:
        """Keep an exchange, durably, in the order of the requests; OSError if there is no room."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.size() + len(data) > self.most_bytes:
            raise SpoolFull("The spool is full (LCM_GATEWAY_SPOOL_BYTES).")
        name = f"{int(received_at.timestamp() * 1e9):020d}-{secrets.token_hex(4)}"
        temporary = self.directory / f"{name}.part"
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(self.directory / f"{name}{_ENDING}")
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def oldest(self) -> Path | None:
        """The exchange that was kept first, if there is one."""
        return min(self.directory.glob(f"*{_ENDING}"), default=None)

    def count(self) -> int:
        return sum(1 for _ in self.directory.glob(f"*{_ENDING}"))

    def size(self) -> int:
        """The bytes of all files in it."""
        found = 0
        for path in self.directory.rglob("*"):
            try:
                found += path.stat().st_size if path.is_file() else 0
            except FileNotFoundError:
                # Recorded in this moment.
                continue
        return found

    def reject(self, path: Path) -> None:
        """Put an exchange aside for a person to look at."""
        aside = self.directory / _REJECTED
        aside.mkdir(mode=0o700, exist_ok=True)
        path.rename(aside / path.name)

"""The spool: a bounded directory of exchanges still to be recorded."""

from __future__ import annotations

import fcntl
import math
import os
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Self

import structlog

from conversations.files.storage import sync
from lcmsite.embedded_postgres.location import open_lock_file, try_lock

logger = structlog.get_logger(__name__)

_ENDING, _UNFINISHED = ".exchange", ".part"
# How long rejected exchanges, which cannot be recorded, are kept. Above `most_bytes`, the oldest are removed.
_REJECTED = "rejected"
REJECTED_SECONDS = 30 * 24 * 3600
# Minimum time between two counts of the waiting files: a person may have removed some of them.
SECONDS_BETWEEN_COUNTS = 10.0
# How long to wait for the lock of a gateway that is shutting down.
SECONDS_TO_CLAIM = 10.0


class SpoolFull(OSError):
    """The exchange would exceed the spool's size limit."""


class SpoolInUse(RuntimeError):
    """Another gateway holds the lock of the spool."""


@dataclass
class Spool:
    """A directory with one file per exchange. Thread-safe.

    One process adds files and removes them, through one instance, which counts their bytes: listing a large directory
    takes long.
    """

    directory: Path
    most_bytes: int
    # Infinite until the files were counted, so that the first `add` counts them.
    _waiting_bytes: float = field(default=math.inf, init=False)
    _writing_bytes: int = field(default=0, init=False)
    _counted_at: float = field(default=-math.inf, init=False)
    _changing: threading.Lock = field(default_factory=threading.Lock, init=False)

    @classmethod
    def below(cls, data_directory: Path, *, most_bytes: int) -> Self:
        return cls(data_directory / "gateway" / "spool", most_bytes)

    def claim(self) -> int | None:
        """Lock the spool for this process. Raises SpoolInUse if another gateway holds it.

        Returns the descriptor of the lock file, to be closed at the end; None if the file cannot be locked.
        """
        try:
            self.directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = open_lock_file(self.directory.with_suffix(".lock"))
            is_mine = try_lock(lock, fcntl.LOCK_EX, within=SECONDS_TO_CLAIM)
        except OSError as refusal:
            # Also on a file system without locks.
            logger.warning("gateway_spool_not_claimed", reason=type(refusal).__name__)
            return None
        if not is_mine:
            os.close(lock)
            raise SpoolInUse(f"Another gateway uses {self.directory}: end it, or give this one its own LCM_DATA_DIR.")
        return lock

    def open(self) -> None:
        """Reject the incomplete files of a process that was killed."""
        for path in self.directory.glob(f"*{_UNFINISHED}"):
            # If they cannot be moved, they stay where they are.
            with suppress(OSError):
                self.reject(path)

    def add(self, data: bytes, *, lane: str, received_at: datetime) -> None:
        """Write an exchange and flush it to disk. Raises OSError if that fails.

        Exchanges are ordered by the time of their request.
        """
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._changing:
            self._require_room(len(data))
            self._writing_bytes += len(data)
        name = f"{int(received_at.timestamp() * 1e9):020d}-{lane}-{secrets.token_hex(4)}"
        temporary = self.directory / f"{name}{_UNFINISHED}"
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            with self._changing:
                temporary.rename(self.directory / f"{name}{_ENDING}")
                self._waiting_bytes += len(data)
            sync(self.directory)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            with self._changing:
                self._writing_bytes -= len(data)

    def _require_room(self, size: int) -> None:
        """Raise SpoolFull if `size` bytes do not fit, even after a new count."""
        if not self._fits(size) and time.monotonic() - self._counted_at > SECONDS_BETWEEN_COUNTS:
            self._waiting_bytes = sum(size for _, _, size in _sizes(self.directory.glob(f"*{_ENDING}")))
            self._counted_at = time.monotonic()
        if not self._fits(size):
            raise SpoolFull("The spool is full.")

    def _fits(self, size: int) -> bool:
        return self._waiting_bytes + self._writing_bytes + size <= self.most_bytes

    def remove(self, path: Path) -> None:
        """Delete the file of an exchange that is recorded."""
        size = path.stat().st_size
        with self._changing:
            path.unlink()
            self._waiting_bytes -= size

    def in_order(self) -> list[Path]:
        """Return the files of the waiting exchanges, oldest first."""
        return sorted(self.directory.glob(f"*{_ENDING}"))

    def size(self) -> int:
        """Return the total bytes of the waiting exchanges."""
        return sum(size for _, _, size in _sizes(self.directory.glob("*.*")))

    def rejected_size(self) -> int:
        """Return the total bytes of the rejected exchanges."""
        return sum(size for _, _, size in _sizes(self._aside.glob("*.*")))

    def reject(self, path: Path) -> None:
        """Move an exchange to the rejected ones, for a person to look at."""
        self._aside.mkdir(mode=0o700, exist_ok=True)
        size = path.stat().st_size if path.suffix == _ENDING else 0
        with self._changing:
            path.rename(self._aside / path.name)
            self._waiting_bytes -= size
        self._bound_rejected()

    def _bound_rejected(self) -> None:
        """Remove rejected exchanges that are too old, or the oldest above the limit."""
        kept = 0
        for path, changed, size in sorted(_sizes(self._aside.glob("*.*")), reverse=True):
            kept += size
            if kept > self.most_bytes or changed < time.time() - REJECTED_SECONDS:
                path.unlink(missing_ok=True)
                logger.warning("gateway_rejected_removed", bytes=size)

    @property
    def _aside(self) -> Path:
        return self.directory / _REJECTED


def lane_in(path: Path) -> str:
    """Return the lane in the name of a spooled file."""
    return path.name.split("-")[1]


def _sizes(paths: Iterable[Path]) -> Iterator[tuple[Path, float, int]]:
    for path in paths:
        try:
            found = path.stat()
        except FileNotFoundError:
            # The exchange has just been recorded and its file removed.
            continue
        yield path, found.st_mtime, found.st_size

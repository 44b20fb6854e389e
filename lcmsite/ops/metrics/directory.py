"""The directory in which a machine's processes share their metrics.

Each machine has its own: machines may share a data directory, but file locks and process ids are local to a machine.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from lcmsite.embedded_postgres.location import open_lock_file, try_lock

logger = structlog.get_logger(__name__)

# The variable that the Prometheus client reads when it is first imported.
VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
LOCK = "in-use.lock"

# A process needs less than this for its counters.
ROOM_BYTES = 4 * 1024**2

# A file system in memory that every user may write to; Linux only.
MEMORY = Path("/dev/shm")


def shared_directory() -> Path | None:
    """The directory that processes share; None if this process counts alone."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def environment_to_count() -> dict[str, str]:
    """The environment of a new process, which counts alone without room to share.

    The kernel kills a process that writes to a mapped file on a full file system, and so would kill it at every start.
    """
    shared = shared_directory()
    if shared is None or _has_room(shared):
        return dict(os.environ)
    logger.warning("metrics_not_shared", directory=str(shared))
    return {name: value for name, value in os.environ.items() if name != VARIABLE}


def _has_room(directory: Path) -> bool:
    try:
        return shutil.disk_usage(directory).free >= ROOM_BYTES
    except OSError:
        return False


@contextmanager
def shared_metrics(data_dir: Path) -> Iterator[None]:
    """Share a directory with child processes; the first holder empties it.

    The counts of ended processes stay while any process holds the directory, because counters must not go down. If the
    environment names a directory, that one is used instead, and is never emptied.
    """
    if shared_directory() is not None:
        yield
        return
    ours = _directory_for(data_dir)
    _sweep(ours.parent, but=ours)
    lock = _lock(ours)
    try:
        os.environ[VARIABLE] = str(ours)
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        os.close(lock)


def _directory_for(data_dir: Path) -> Path:
    """The directory for this data directory and machine, in memory if possible.

    Memory is used because on a full disk the kernel kills a process that writes to a mapped file.
    """
    machine = socket.gethostname()
    digest = hashlib.sha256(os.fsencode(data_dir.absolute()) + machine.encode()).hexdigest()[:16]
    ours = MEMORY / f"{_prefix()}{digest}"
    try:
        ours.mkdir(mode=0o700, exist_ok=True)
        found = ours.lstat()
        # Every user may write there, so another user may have created it first.
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077:
            return ours
    except OSError:
        pass
    return data_dir / "metrics" / machine


def _prefix() -> str:
    return f"lcm-metrics-{os.geteuid()}-"


def _lock(directory: Path) -> int:
    """Take a shared lock on the directory; its first holder empties it."""
    while True:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            lock = open_lock_file(directory / LOCK)
        except FileNotFoundError:
            continue
        if try_lock(lock, fcntl.LOCK_EX):
            _empty(directory)
        # Between the two locks another process may get the exclusive lock; it empties the directory again, harmlessly.
        try_lock(lock, fcntl.LOCK_SH, within=5.0)
        # Another process may have removed the lock file before it was locked.
        if (directory / LOCK).exists() and os.path.samestat(os.fstat(lock), (directory / LOCK).stat()):
            return lock
        os.close(lock)


def _sweep(parent: Path, *, but: Path) -> None:
    """Remove directories that no process holds, of sites or machines that are gone."""
    if not parent.is_dir():
        return
    for directory in parent.iterdir():
        if parent == MEMORY and not directory.name.startswith(_prefix()):
            continue
        if directory == but or not (directory / LOCK).is_file():
            continue
        lock = open_lock_file(directory / LOCK)
        try:
            if try_lock(lock, fcntl.LOCK_EX):
                shutil.rmtree(directory, ignore_errors=True)
        finally:
            os.close(lock)


def _empty(directory: Path) -> None:
    for file in directory.iterdir():
        if file.name != LOCK:
            file.unlink(missing_ok=True)

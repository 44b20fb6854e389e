"""The directory in which a machine's processes share their metrics.

One for each machine, as file locks and process numbers tell nothing beyond it: two of them may share a data directory.
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

from lcmsite.embedded_postgres.location import open_lock_file, try_lock

# Read by the Prometheus client when it is first imported.
VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
LOCK = "in-use.lock"

# A file system in memory, for every user; on Linux.
MEMORY = Path("/dev/shm")


def shared_directory() -> Path | None:
    """Where processes share their figures; None for a process that stands alone."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


@contextmanager
def held(data_dir: Path) -> Iterator[None]:
    """Share a directory with child processes; the first holder empties it.

    What processes have counted that are gone stays for as long as anybody is there: a sum must not go down. If the
    environment names a directory, that one is used and left as it is.
    """
    if shared_directory() is not None:
        yield
        return
    ours = _place(data_dir)
    _sweep(ours.parent, but=ours)
    lock = _locked(ours)
    try:
        os.environ[VARIABLE] = str(ours)
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        os.close(lock)


def _place(data_dir: Path) -> Path:
    """The directory for this data directory and machine, in memory if possible.

    On a full disk a process that writes to a mapped file is killed by the kernel.
    """
    machine = socket.gethostname()
    digest = hashlib.sha256(os.fsencode(data_dir.absolute()) + machine.encode()).hexdigest()[:16]
    ours = MEMORY / f"{_prefix()}{digest}"
    try:
        ours.mkdir(mode=0o700, exist_ok=True)
        found = ours.lstat()
        # Everybody may write there, so somebody else may have made it first.
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077:
            return ours
    except OSError:
        pass
    return data_dir / "metrics" / machine


def _prefix() -> str:
    return f"lcm-metrics-{os.geteuid()}-"


def _locked(directory: Path) -> int:
    """A lock on the directory, shared; whoever is the first there empties it."""
    while True:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            lock = open_lock_file(directory / LOCK)
        except FileNotFoundError:
            continue
        if try_lock(lock, fcntl.LOCK_EX):
            _empty(directory)
        # From one lock to the other there is a gap, and whoever is in it has emptied the directory, too.
        try_lock(lock, fcntl.LOCK_SH, within=5.0)
        # Another start may have removed it before it was locked.
        if (directory / LOCK).exists() and os.path.samestat(os.fstat(lock), (directory / LOCK).stat()):
            return lock
        os.close(lock)


def _sweep(parent: Path, *, but: Path) -> None:
    """Remove directories without a holder, of sites or machines that are gone."""
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

"""The directory in which the processes of this machine keep what they have in common: files, mapped into memory.

One for each machine, as file locks and process numbers tell nothing beyond it: two of them may share a data directory.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lcmsite.embedded.locks import open_lock_file, try_lock

# Read by the Prometheus client when it is first imported.
VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
LOCK = "in-use.lock"


def shared_directory() -> Path | None:
    """Where processes share their figures; None for a process that stands alone."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


@contextmanager
def held(data_dir: Path) -> Iterator[None]:
    """Within, processes that are started share a directory; it is emptied by the first who comes, and not by others.

    What processes have counted that are gone stays for as long as anybody is there: a sum must not go down. If the
    environment names a directory, that one is used and left as it is.
    """
    if shared_directory() is not None:
        yield
        return
    ours = data_dir / "metrics" / socket.gethostname()
    ours.mkdir(parents=True, exist_ok=True)
    _sweep(ours.parent, but=ours)
    lock = open_lock_file(ours / LOCK)
    try:
        if try_lock(lock, fcntl.LOCK_EX):
            _empty(ours)
        # From one lock to the other there is a gap, and whoever is in it has emptied the directory, too.
        try_lock(lock, fcntl.LOCK_SH, within=5.0)
        os.environ[VARIABLE] = str(ours)
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        os.close(lock)


def _sweep(parent: Path, *, but: Path) -> None:
    """Remove the directories of machines that are gone, such as containers whose names are made up anew."""
    for directory in parent.iterdir():
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

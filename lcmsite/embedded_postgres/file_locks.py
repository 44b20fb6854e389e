"""Locks on files, kept by the kernel: they end with their holders, whichever way those end."""

import fcntl
import os
import time
from pathlib import Path


def open_lock_file(path: Path) -> int:
    """A descriptor of the file, made if need be; the lock taken on it lasts until the last copy is closed."""
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

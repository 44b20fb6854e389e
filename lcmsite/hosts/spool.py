"""The spool: work that hooks leave for later, one small file per entry.

An entry's `do` is `import` (a transcript), `flush` (a session, before its host compacts), `append` (messages) or
`summarize` (a session that has ended). It stays until it is done, so nothing is missed while LCM is down. A transcript
has one entry at most.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from lcmsite.embedded_postgres.location import open_lock_file, try_lock
from lcmsite.hosts import host_state

# Above these limits, new entries are refused: old ones must be kept, and the disk must not fill up.
MOST_ENTRIES = 5000
MOST_BYTES = 64 * 1024**2


class SpoolFull(OSError):
    """The spool has reached its limit of entries or bytes."""


def folder() -> Path:
    return host_state.folder() / "spool"


def add(entry: dict[str, Any]) -> None:
    """Add an entry. Raises SpoolFull if there is no room."""
    text = json.dumps({**entry, "at": time.time()})
    name = f"{time.time_ns():020d}-{os.getpid()}.json"
    if entry["do"] == "import":
        name = _import_name(entry["file"])
    path = folder() / name
    if not path.exists():
        count, size = pending()
        if count >= MOST_ENTRIES or size + len(text) > MOST_BYTES:
            raise SpoolFull(f"The spool {folder()} is full.")
    host_state.write_text(path, text)


def _import_name(file: str) -> str:
    return f"import-{hashlib.sha256(file.encode()).hexdigest()[:24]}.json"


def pending() -> tuple[int, int]:
    """Return the number of waiting entries, and their bytes."""
    sizes = []
    for path in folder().glob("*.json"):
        # Another process may have just removed it.
        with suppress(FileNotFoundError):
            sizes.append(path.stat().st_size)
    return len(sizes), sum(sizes)


def entries() -> list[tuple[str, dict[str, Any]]]:
    """Return the entries with their file names: imports first, then others by age."""
    found = []
    for path in folder().glob("*.json"):
        try:
            found.append((path.name, json.loads(path.read_text("utf-8"))))
        except (OSError, ValueError):
            # The file was just removed, or truncated by a full disk.
            continue
    # A session comes before the sessions of its subagents, whose parent it is.
    return sorted(found, key=lambda each: (each[1]["do"] != "import", bool(each[1].get("is_child")), each[1]["at"]))


def has_flush(session: str) -> bool:
    """Whether a flush of this session waits or is in progress."""
    return any(entry["do"] == "flush" and entry["session"] == session for _, entry in entries())


def has_import(file: str) -> bool:
    """Whether this transcript waits to be imported."""
    return (folder() / _import_name(file)).exists()


def hold() -> int | None:
    """Lock the spool for replaying; None if another process holds the lock.

    Returns a file descriptor; closing it releases the lock.
    """
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = open_lock_file(folder() / ".lock")
    if try_lock(lock, fcntl.LOCK_EX):
        return lock
    os.close(lock)
    return None


def done(name: str, entry: dict[str, Any]) -> None:
    """Remove an entry, unless a hook has written it again since it was read."""
    taken = folder() / f".{name}.done"
    # Renamed before it is compared: what a hook writes from then on is a new file.
    with suppress(OSError):
        (folder() / name).rename(taken)
        if _is_as_read(taken.name, entry):
            taken.unlink()
        else:
            taken.rename(folder() / name)


def count_attempt(name: str, entry: dict[str, Any]) -> None:
    """Count a failed attempt at an entry, unless a hook has written it again."""
    if _is_as_read(name, entry):
        attempts = entry.get("attempts", 0) + 1
        # With a full disk the attempt is not counted; other entries go on.
        with suppress(OSError):
            host_state.write_text(folder() / name, json.dumps({**entry, "attempts": attempts}))


def _is_as_read(name: str, entry: dict[str, Any]) -> bool:
    try:
        return bool(json.loads((folder() / name).read_text("utf-8"))["at"] == entry["at"])
    except (OSError, ValueError):
        return False

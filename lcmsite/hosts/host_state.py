"""Store the state of connected hosts in files, readable without Django.

The files are in `lcm` below XDG_STATE_HOME or ~/.local/state, in a folder for each host: `connection.json` (LCM's
address, the key, the `LCM_*` settings for hooks), `written.json` (the edits of `lcm connect`), `activity.json` (the
last event, the last import). Only their owner may read them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

Row = dict[str, Any]

# The mode of a file that may hold a key.
OWNER_ALONE = 0o600
_LOG = "hooks.log"
_LONGEST_LOG = 1_000_000


def folder() -> Path:
    """Return the folder of all state; it may not exist yet."""
    own = os.environ.get("XDG_STATE_HOME")
    return (Path(own) if own else Path.home() / ".local" / "state") / "lcm"


def path_of(host: str, name: str) -> Path:
    return folder() / host / name


def read(host: str, name: str) -> Row:
    """Read a host's file; {} if it is missing or damaged."""
    try:
        found = json.loads(path_of(host, name).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write(host: str, name: str, row: Mapping[str, Any]) -> None:
    """Replace a host's file atomically."""
    write_text(path_of(host, name), json.dumps(row))


def write_text(path: Path, text: str) -> None:
    """Write a file atomically, readable by its owner only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace(path, text.encode(), mode=OWNER_ALONE)


def replace(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file atomically; its folder must exist."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.touch(mode=OWNER_ALONE)
        unfinished.write_bytes(content)
        unfinished.chmod(mode)
        unfinished.replace(path)
    finally:
        # The unfinished file may hold a key.
        unfinished.unlink(missing_ok=True)


def note(host: str, **values: Any) -> None:
    """Record values in the host's `activity.json`, each with the current time."""
    now = time.time()
    row = read(host, "activity.json")
    row.update({name: {"at": now, "what": value} for name, value in values.items()})
    write(host, "activity.json", row)


def forget_event(host: str) -> None:
    """Forget a host's last event, so that the next one shows that its hooks run."""
    row = read(host, "activity.json")
    if row.pop("event", None):
        write(host, "activity.json", row)


def forget(host: str, name: str) -> None:
    path_of(host, name).unlink(missing_ok=True)


def forget_host(host: str) -> None:
    """Remove a host's files; without another host or a spool entry, also the rest."""
    for path in (folder() / host).glob("*"):
        path.unlink()
    spool = folder() / "spool"
    with suppress(OSError):
        (folder() / host).rmdir()
        if not any(spool.glob("*.json")) and {path.name for path in folder().iterdir()} <= {"spool", _LOG}:
            for path in (spool / ".lock", folder() / _LOG):
                path.unlink(missing_ok=True)
            if spool.exists():
                spool.rmdir()
            folder().rmdir()


def log(sentence: str) -> None:
    """Append a line to `hooks.log`; above a size limit, the file is emptied first."""
    path = folder() / _LOG
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=OWNER_ALONE)
        is_long = path.stat().st_size > _LONGEST_LOG
        with path.open("w" if is_long else "a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {os.getpid()} {sentence}\n")
    except OSError:
        return

"""Find the project that a transcript's line names: git remote or directory.

Codex and pi name the project once, in the first line of a session. Claude Code names the directory in every line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from conversations.content.lossless_values import is_name

_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
# `git@github.com:a/b.git`, the form of ssh without a scheme.
_SHORT = re.compile(r"^(?:[^@/\s]+@)?([^:/\s]+):(?!\d+/)(.+)$")


def project_of(line: Mapping[str, Any]) -> str:
    """Return the project that this line names; empty if it names none."""
    of_session = line
    if isinstance(payload := line.get("payload"), Mapping):
        of_session = payload if line.get("type") == "session_meta" else {}
    git = of_session.get("git")
    remote = git.get("repository_url") if isinstance(git, Mapping) else None
    directory = of_session.get("cwd")
    found = ""
    if isinstance(remote, str):
        found = normal_remote(remote)
    if not found and isinstance(directory, str):
        # The root directory is no project: an export writes it if the conversation has none.
        found = directory.rstrip("/\\")
    return found if is_name(found) else ""


def normal_remote(remote: str) -> str:
    """Normalize a git remote to host/path, without scheme, user, port and `.git`."""
    remote = remote.strip()
    short = None if _SCHEME.match(remote) else _SHORT.match(remote)
    if short:
        remote = f"{short[1]}/{short[2]}"
    host, slash, path = _SCHEME.sub("", remote).partition("/")
    host = host.rpartition("@")[2].partition(":")[0].lower()
    path = path.strip("/").removesuffix(".git").strip("/")
    return f"{host}{slash}{path}" if host and path else ""

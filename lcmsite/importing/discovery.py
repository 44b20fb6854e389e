"""Find the files in which agents on this machine store their sessions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

# A program may still be writing a file that has changed within this time.
QUIET_SECONDS = 3


@dataclass(frozen=True)
class Place:
    """Where an agent stores its sessions: a folder, and patterns of file names."""

    agent: str
    folder: Path
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class FoundFile:
    """A file with sessions of an agent, with its time and size to detect changes."""

    agent: str
    path: Path
    # The latest change in nanoseconds, and the total bytes, of the file and its write-ahead log.
    changed: int
    byte_size: int

    @property
    def changed_at(self) -> datetime:
        return datetime.fromtimestamp(self.changed / 1e9, UTC)


@dataclass(frozen=True)
class FoundFiles:
    """The number, size and dates of an agent's files in one folder."""

    agent: str
    folder: str
    files: int
    byte_size: int
    oldest: datetime
    newest: datetime


def places_of(home: Path, environment: Mapping[str, str], directories: Iterable[Path] = ()) -> list[Place]:
    """Return the folders of all agents; aider's files are searched in `directories`."""

    def folder(variable: str, *default: str) -> Path:
        return Path(environment[variable]) if environment.get(variable) else home.joinpath(*default)

    data = folder("XDG_DATA_HOME", ".local", "share") / "opencode"
    database = Path(environment.get("OPENCODE_DB") or "opencode*.db")
    codex = folder("CODEX_HOME", ".codex")
    rollouts = ("rollout-*.jsonl", "rollout-*.jsonl.zst")
    return [
        Place("Claude Code", folder("CLAUDE_CONFIG_DIR", ".claude") / "projects", ("*.jsonl",)),
        Place("Codex", codex / "sessions", rollouts),
        Place("Codex", codex / "archived_sessions", rollouts),
        Place("OpenCode", database.parent if database.is_absolute() else data, (database.name,)),
        Place("pi", folder("PI_CODING_AGENT_DIR", ".pi", "agent") / "sessions", ("*.jsonl",)),
        Place("Gemini CLI", home / ".gemini" / "tmp", ("*/chats/**/*.json", "*/chats/**/*.jsonl")),
        *(Place("aider", each, (".aider.chat.history.md",)) for each in directories),
    ]


def find_files(places: Iterable[Place]) -> list[FoundFile]:
    """List the files with sessions, parents before sub-agents."""
    found = {}
    for place in places:
        for pattern in place.patterns:
            for path in _matches(place, pattern):
                if (file := _found(place.agent, path)) is not None:
                    found[path] = file
    return sorted(found.values(), key=_order)


def counted(files: Iterable[FoundFile], places: Iterable[Place]) -> list[FoundFiles]:
    """Count the files by agent and folder, with the oldest and newest dates."""
    groups: dict[tuple[str, str], list[FoundFile]] = {}
    known = list(places)
    for file in files:
        place = next(each for each in known if each.agent == file.agent and each.folder in file.path.parents)
        groups.setdefault((file.agent, str(place.folder)), []).append(file)
    return [
        FoundFiles(
            agent=agent,
            folder=folder,
            files=len(group),
            byte_size=sum(file.byte_size for file in group),
            oldest=min(file.changed_at for file in group),
            newest=max(file.changed_at for file in group),
        )
        for (agent, folder), group in groups.items()
    ]


def _matches(place: Place, pattern: str) -> Iterator[Path]:
    return place.folder.glob(pattern) if place.agent == "OpenCode" else place.folder.rglob(pattern)


def _found(agent: str, path: Path) -> FoundFile | None:
    """Return the file at a path; None if it is empty, gone or not readable."""
    try:
        parts = [path.stat()]
        log = path.with_name(f"{path.name}-wal")
        # Reading a database can leave an empty log behind.
        if path.suffix == ".db" and log.exists() and log.stat().st_size:
            parts.append(log.stat())
    except OSError:
        return None
    size = sum(part.st_size for part in parts)
    if not size or not path.is_file() or not os.access(path, os.R_OK):
        return None
    return FoundFile(agent, path, max(part.st_mtime_ns for part in parts), size)


def _order(file: FoundFile) -> tuple[object, ...]:
    # Codex's file names begin with the time when the session began, so parents sort first.
    named = file.path.name if file.agent == "Codex" else ""
    return file.agent, _is_below_another(file.path), named, file.changed, file.path


def _is_below_another(path: Path) -> bool:
    """Whether a sub-agent wrote the file, by the folders of Claude Code and Gemini."""
    return path.parent.name == "subagents" or path.parent.parent.name == "chats"

"""Import the files of agents that have changed since the last sweep.

A small file per workspace lists the imported files. It only saves time: without it, all files are read again, and still
nothing is stored twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from conversations.errors import LcmError
from conversations.models import Conversation
from conversations.store.conversations import ConversationStore
from lcmsite.hosts import host_state
from lcmsite.importing.discovery import FoundFile
from lcmsite.importing.history import History
from lcmsite.importing.importer import Importer


@dataclass(frozen=True)
class Refused:
    """A file that was not imported, or only in part, and why."""

    file: str
    code: str
    detail: str


@dataclass
class Sweep:
    """The result of one sweep, or the sum of several."""

    files: int = 0
    unchanged: int = 0
    conversations: int = 0
    created: int = 0
    stored_before: int = 0
    refused: list[Refused] = field(default_factory=list)
    # By file: the numbers of the lines of a transcript that are not JSON. The others are imported.
    broken_lines: dict[str, list[int]] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Whether no file was refused."""
        return not self.refused

    def after(self, before: Sweep) -> Sweep:
        """Return the sums of both sweeps, with `unchanged` and `refused` of this one."""
        return replace(
            self,
            files=self.files + before.files,
            conversations=self.conversations + before.conversations,
            created=self.created + before.created,
            stored_before=self.stored_before + before.stored_before,
            broken_lines=before.broken_lines | self.broken_lines,
        )


@dataclass(frozen=True)
class Memory:
    """A JSON file of the imported files: time of change, size and session of each."""

    path: Path

    def read(self) -> dict[str, list[int | str]]:
        """Read the records by path; {} if the file is missing or damaged."""
        with suppress(OSError, ValueError):
            found = json.loads(self.path.read_text("utf-8"))
            if isinstance(found, dict):
                return found
        return {}

    def write(self, known: dict[str, list[int | str]]) -> None:
        """Replace the file atomically."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        host_state.replace(self.path, json.dumps(known).encode(), mode=host_state.OWNER_ALONE)


@dataclass(frozen=True)
class Sweeper:
    """Imports files that have changed since the sweep that imported them."""

    store: ConversationStore
    memory: Memory
    # Refusals that no retry can cure, by path, each with the state of its file: until that changes, it is not read.
    _refusals: dict[str, tuple[list[int], Refused]] = field(default_factory=dict)

    def sweep(self, files: Iterable[FoundFile]) -> Sweep:
        """Import each changed file; one that is refused does not stop the others."""
        result, known = Sweep(), self.memory.read()
        sessions: set[int] = set()
        for file in files:
            name, state = str(file.path), [file.changed, file.byte_size]
            if (before := known.get(name)) is not None and before[:2] == state and self._is_there(str(before[2])):
                result.unchanged += 1
                continue
            if name in self._refusals and self._refusals[name][0] == state:
                result.refused.append(self._refusals[name][1])
                continue
            try:
                history = History(path=file.path)
                stored = Importer(self.store, history).run()
            except LcmError as refusal:
                result.refused.append(Refused(name, refusal.code, refusal.detail))
                if not refusal.retryable:
                    self._refusals[name] = state, result.refused[-1]
                continue
            result.files += 1
            result.created += sum(each.created for each in stored)
            result.stored_before += sum(each.stored_before for each in stored)
            if history.broken_lines:
                result.broken_lines[name] = history.broken_lines
            sessions |= {each.conversation_id for each in stored}
            known[name] = [*state, stored[0].session_id if stored else ""]
            self.memory.write(known)
        result.conversations = len(sessions)
        return result

    def _is_there(self, session_id: str) -> bool:
        """Whether a file's conversation exists: the database may have been replaced."""
        rows = self.store.scope.narrow(Conversation.objects.filter(session_id=session_id))
        return not session_id or rows.exists()

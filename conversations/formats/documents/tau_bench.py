"""Read runs of tau-bench: the messages and calls of a task. Pure.

    [{"task_id", "trial", "reward", "info", "traj": [a message of the Chat Completions API, ...]}, ...]

Each run of a task is a session, named after the file, the task and the trial.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from conversations.formats.documents.sessions import HostSession, SessionMessage, name_of
from conversations.formats.foreign_rows import Fields
from conversations.formats.openai_chat import from_openai_chat


def is_document(value: Any) -> bool:
    """Whether this is such a run."""
    return isinstance(value, Mapping) and isinstance(value.get("traj"), list) and "task_id" in value


def sessions_of(document: Mapping[str, Any], path: PurePath) -> Iterator[HostSession]:
    """Yield the session; ValueError names what is wrong in it."""
    rows = [fields.values for fields in Fields(document).objects("traj")]
    yield HostSession(
        session_id=f"{name_of(path)}-{document['task_id']}-{document.get('trial', 0)}",
        messages=tuple(SessionMessage(from_openai_chat(row), row) for row in rows),
    )

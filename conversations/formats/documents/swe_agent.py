"""Read trajectories of SWE-agent (`.traj`): the history its model saw. Pure.

    {"history": [a message of the Chat Completions API, with "thought", "action", "agent"], "trajectory": [...], "info"}

`trajectory` repeats the history step by step, and is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from conversations.formats.documents.sessions import HostSession, SessionMessage, name_of, text_of
from conversations.formats.foreign_rows import Fields
from conversations.formats.openai_chat import from_openai_chat


def is_document(value: Any) -> bool:
    """Whether this is such a trajectory."""
    return isinstance(value, Mapping) and all(isinstance(value.get(key), list) for key in ("history", "trajectory"))


def sessions_of(document: Mapping[str, Any], path: PurePath) -> Iterator[HostSession]:
    """Yield the session, named after its file; ValueError names what is wrong in it."""
    rows = [fields.values for fields in Fields(document).objects("history")]
    yield HostSession(
        session_id=name_of(path),
        messages=tuple(SessionMessage(from_openai_chat(row), row) for row in rows),
        title=text_of(document.get("environment")),
        passed_over=Counter({"trajectory": len(document["trajectory"])} if document["trajectory"] else {}),
    )

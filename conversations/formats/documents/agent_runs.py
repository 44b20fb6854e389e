"""Read runs of the benchmarks SWE-agent and tau-bench: chat messages. Pure.

    SWE-agent (`.traj`): {"history": [a message of the Chat Completions API, ...], "trajectory": [...], "info"}
    tau-bench: [{"task_id", "trial", "reward", "info", "traj": [a message of the Chat Completions API, ...]}, ...]

SWE-agent's `trajectory` repeats the history step by step, and is left out. Each run of tau-bench is a session, named
after the file, the task and the trial.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from conversations.formats.documents.sessions import HostSession, SessionMessage, name_of, text_of
from conversations.formats.foreign_rows import Fields
from conversations.formats.openai_chat import from_openai_chat


def is_swe_agent(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(value.get(key), list) for key in ("history", "trajectory"))


def is_tau_bench(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("traj"), list) and "task_id" in value


def swe_agent_sessions(document: Mapping[str, Any], path: PurePath) -> Iterator[HostSession]:
    """Yield the session, named after its file; ValueError names what is wrong in it."""
    yield HostSession(
        session_id=name_of(path),
        messages=_messages(document, "history"),
        title=text_of(document.get("environment")),
        passed_over=Counter({"trajectory": len(document["trajectory"])} if document["trajectory"] else {}),
    )


def tau_bench_sessions(document: Mapping[str, Any], path: PurePath) -> Iterator[HostSession]:
    """Yield the session; ValueError names what is wrong in it."""
    name = f"{name_of(path)}-{document['task_id']}-{document.get('trial', 0)}"
    yield HostSession(session_id=name, messages=_messages(document, "traj"))


def _messages(document: Mapping[str, Any], key: str) -> tuple[SessionMessage, ...]:
    rows = [fields.values for fields in Fields(document).objects(key)]
    return tuple(SessionMessage(from_openai_chat(row), row) for row in rows)

"""Read whole files of other programs, with one or more sessions each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from conversations.formats.documents import agent_runs, chatgpt, claude_ai, gemini, opencode
from conversations.formats.documents.sessions import HostSession


class Document(NamedTuple):
    """A JSON value that shows by its keys which program wrote it."""

    name: str
    is_document: Callable[[Any], bool]
    # Raises ValueError, which names what is wrong.
    sessions_of: Callable[[Mapping[str, Any], PurePath], Iterator[HostSession]]
    # Whether it records a finished run, so that it does not grow: the journal stores it whole.
    is_finished: bool = False


DOCUMENTS = (
    Document("OpenCode", opencode.is_document, opencode.sessions_of),
    Document("Gemini CLI", gemini.is_document, gemini.sessions_of),
    Document("ChatGPT", chatgpt.is_document, chatgpt.sessions_of),
    Document("Claude.ai", claude_ai.is_document, claude_ai.sessions_of),
    Document("SWE-agent", agent_runs.is_swe_agent, agent_runs.swe_agent_sessions, is_finished=True),
    Document("tau-bench", agent_runs.is_tau_bench, agent_runs.tau_bench_sessions, is_finished=True),
)


def document_of(value: Any) -> Document | None:
    """Return the format of this document; None if it is in none of them."""
    return next((each for each in DOCUMENTS if each.is_document(value)), None)

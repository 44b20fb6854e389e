"""Transcripts that agents keep of their sessions: lines that say by themselves whose they are. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from conversations.formats import claude_code, codex, pi
from conversations.types import NewMessage

Line = Mapping[str, Any]


class Transcript(NamedTuple):
    """One agent's: how its lines are known, which of them hold a message, and of which session."""

    is_line: Callable[[Any], bool]
    holds_message: Callable[[Line], bool]
    # Empty where a line does not say it.
    session_of: Callable[[Line], str]
    # Raises ValueError, which names the field that is not right.
    message_of: Callable[[Line], NewMessage]


TRANSCRIPTS = (
    Transcript(claude_code.is_line, claude_code.holds_message, claude_code.session_of, claude_code.from_claude_code),
    Transcript(codex.is_line, codex.holds_message, codex.session_of, codex.from_codex),
    Transcript(pi.is_line, pi.holds_message, pi.session_of, pi.from_pi),
)


def transcript_of(row: Any) -> Transcript | None:
    """Whose line this is; None if it is nobody's."""
    return next((each for each in TRANSCRIPTS if each.is_line(row)), None)

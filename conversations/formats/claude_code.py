"""Lines of the transcripts that Claude Code keeps: a message of Anthropic's API, and what is noted of it. Pure.

    {"type": "assistant", "message": {"role", "content", ...}, "sessionId", "uuid", "timestamp", "isSidechain", ...}

An answer of the API is one line for each of its blocks, and each line a message here: they are shown to a model as one
again. Lines of other types, such as `progress`, hold none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conversations.formats.anthropic_messages import from_anthropic, to_anthropic
from conversations.formats.fields import moment, timestamp_of
from conversations.formats.remainder import remainder, restored, split_note, with_note
from conversations.types import MessageRecord, NewMessage

NOTE = "claude_code"
# What ties a line to its session, or to a message of it; other tools' transcripts have none of these.
_OF_A_LINE = frozenset({"sessionId", "leafUuid", "messageId"})
# An agent's own part of a session, where it is not named.
_SIDE = "sidechain"


def is_line(row: Any) -> bool:
    """Whether this is a line of such a transcript, with a message or without."""
    is_envelope = isinstance(row, Mapping) and isinstance(row.get("type"), str) and "role" not in row
    return is_envelope and not row.keys().isdisjoint(_OF_A_LINE)


def holds_message(line: Mapping[str, Any]) -> bool:
    return isinstance(line.get("message"), Mapping) and "role" in line["message"]


def session_of(line: Mapping[str, Any]) -> str:
    """The session that the line is of; what an agent was sent to do beside it is a session of its own. May be empty."""
    session = line.get("sessionId")
    named = session if isinstance(session, str) else ""
    if line.get("isSidechain") is not True:
        return named
    agent = line.get("agentId")
    return f"{named}:{agent if isinstance(agent, str) and agent else _SIDE}"


def from_claude_code(line: Mapping[str, Any]) -> NewMessage:
    """The message of a line that holds one; ValueError names the field that is not right."""
    message = from_anthropic(line["message"])
    said = replace(message, created_at=moment(line, "timestamp"))
    return replace(said, metadata=with_note(said.metadata, NOTE, remainder(line, _plain(said, line["message"]))))


def to_claude_code(record: MessageRecord) -> dict[str, Any]:
    """The line of a message that came as one: the same line."""
    metadata, rest = split_note(record.metadata, NOTE)
    return restored(_plain(record, to_anthropic(replace(record, metadata=metadata))), rest)


def _plain(message: NewMessage | MessageRecord, row: Mapping[str, Any]) -> dict[str, Any]:
    timestamp = timestamp_of(message.created_at)
    return {"type": row["role"], "message": row, "timestamp": timestamp}

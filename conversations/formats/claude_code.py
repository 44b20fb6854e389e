"""Read and write Claude Code's transcripts: messages of Anthropic's API. Pure.

    {"type": "assistant", "message": {"role", "content", ...}, "sessionId", "uuid", "timestamp", "isSidechain", ...}

Claude Code writes one line for each block of an API response. Each line is a message here; rendering merges them again.
A line with `isCompactSummary` has the text with which Claude Code replaced its context: it becomes a compaction part.
A prompt that the user sends while Claude Code works is an `attachment`. Lines of other types are no messages: a
`progress` has none, an `api-request-blob` a copy of what was sent to the API. Texts that Claude Code wrote in the
user's place, such as the output of a local command, are marked as synthetic: summaries do not quote them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from conversations.content.flattening import flattened
from conversations.formats.anthropic import COMPACTED, from_anthropic, to_anthropic
from conversations.formats.foreign_rows import (
    Fields,
    as_it_came,
    metadata_value,
    restored,
    split_remainder,
    timestamp_of,
    with_key,
    with_remainder,
    with_synthetic,
)
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role

NOTE = "claude_code"
# Keys that name a line's session, or a message in it. Transcripts of other tools have none of these keys.
_KEYS_OF_LINES = frozenset({"sessionId", "leafUuid", "messageId"})
# For each type of line with a title, the key that holds it.
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
# The suffix of a sub-agent's session if the line has no `agentId`.
_SIDE = "sidechain"
# The metadata key of the part of a message whose content was a string.
_STRING = "claude_code_string"
# The metadata key of the first part of a queued prompt.
QUEUED = "claude_code_queued"
# Origins of queued prompts that are not the user.
_OTHERS = frozenset(
    {"auto-continuation", "coordinator", "observer-activity", "peer", "plugin", "task-notification", "tool"}
)
_WRITTEN_BY_HOST = re.compile(r"\s*<(local-command-|command-(name|message)>|task-notification>)")
_ARGUMENTS_OF_USER = re.compile(r"<command-args>\s*[^<\s]")
_CONTINUED = "This session is being continued from a previous conversation"


def is_line(row: Mapping[str, Any]) -> bool:
    """Whether this is a line of such a transcript, with a message or without."""
    return not row.keys().isdisjoint(_KEYS_OF_LINES)


def session_of(line: Mapping[str, Any]) -> str:
    """Return the session of a line, or ""; each sub-agent has its own session."""
    session = line.get("sessionId")
    named = session if isinstance(session, str) else ""
    if line.get("isSidechain") is not True:
        return named
    agent = line.get("agentId")
    return f"{named}:{agent if isinstance(agent, str) and agent else _SIDE}"


def parent_of(line: Mapping[str, Any]) -> str:
    """Return the session whose sub-agent wrote the line, if one did."""
    session = line.get("sessionId")
    return session if line.get("isSidechain") is True and isinstance(session, str) else ""


def title_of(line: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the session's title in a line, and the id of a line of that session.

    The summary of another session may be in the file: `leafUuid` is the last line of the session that it is of.
    """
    title = line.get(_TITLES.get(line.get("type", ""), ""))
    leaf = line.get("leafUuid", "")
    return (title, leaf) if isinstance(title, str) and isinstance(leaf, str) else None


def place_of(line: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the ids of a line and of its predecessor; None if it has no id."""
    # Only the first line after a compaction has `logicalParentUuid`. Without either key, the predecessor of a first
    # prompt is the session, and that of another line is the line itself.
    own, before = line.get("uuid"), line.get("parentUuid") or line.get("logicalParentUuid")
    if not isinstance(own, str):
        return None
    if isinstance(before, str):
        return own, before
    return own, session_of(line) if _is_first_prompt(line) else own


def _is_first_prompt(line: Mapping[str, Any]) -> bool:
    """Whether a line is a prompt that begins its session.

    After `/rewind` to the first prompt, a session has several. The tasks of a sub-agent are not counted: they are no
    branches.
    """
    message = line.get("message")
    if not isinstance(message, Mapping) or message.get("role") != line["type"] or line.get("isSidechain") is True:
        return False
    content = message["content"]
    first = content[0].get("text") if isinstance(content, list) and content else content
    # Older versions of Claude Code did not mark their summaries, but began them with this text.
    is_continued = isinstance(first, str) and first.startswith(_CONTINUED)
    return "parentUuid" in line and may_branch(line) and not is_continued


def may_branch(line: Mapping[str, Any]) -> bool:
    """Whether a line with a message is a prompt: only a prompt can start a branch.

    After `/rewind`, a prompt follows an earlier line. Results of parallel calls also do, but they are no branch.
    """
    if line["type"] != "user":
        return False
    content = line["message"]["content"]
    is_result = isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)
    return not (is_result or line.get("isMeta") or line.get("isCompactSummary"))


def is_queued(line: Any) -> bool:
    """Whether a line may hold a prompt that was sent while Claude Code worked."""
    attached = line.get("attachment") if isinstance(line, Mapping) else None
    if not isinstance(attached, Mapping) or attached.get("type") != "queued_command":
        return False
    # After a compaction, Claude Code may write an earlier one again.
    return not attached.get("carriedByCompaction")


def prompt_ids(line: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the prompt in a line with a message, if it is the user's.

    Claude Code may write a queued prompt several times, also as a line of the user. Such lines have a common id.
    """
    if is_queued(line):
        ids = [line.get("uuid"), line["attachment"].get("source_uuid"), line["attachment"].get("delivery_id")]
    elif line["type"] == Role.USER.value:
        ids = [line.get("uuid"), line.get("sentAsUuid")]
    else:
        ids = []
    return tuple(each for each in ids if isinstance(each, str) and each)


def from_claude_code(line: Mapping[str, Any]) -> NewMessage | None:
    """Read a line, if it holds a message; ValueError names the field that is wrong."""
    if is_queued(line):
        # A prompt of an unknown form is no message.
        with suppress(ValueError):
            return _from_queued(line)
        return None
    if not isinstance(line.get("message"), Mapping) or line["message"].get("role", "") != line["type"]:
        return None
    message, row = from_anthropic(line["message"]), line["message"]
    if line.get("isCompactSummary") is True:
        summary = NewPart(PartType.COMPACTION, text_content=flattened(message.parts) or message.content)
        message = NewMessage(Role.ASSISTANT, parts=(summary,))
        row = _summary_row(summary)
    elif message.role is Role.USER:
        message = _marked(message, is_meta=line.get("isMeta") is True)
    message = replace(message, created_at=Fields(line).moment("timestamp"))
    return with_remainder(message, NOTE, line, _plain(message, row))


def to_claude_code(record: MessageRecord) -> dict[str, Any]:
    """Restore the line that a message was read from."""
    metadata, rest = split_remainder(record.metadata, NOTE)
    parts = as_it_came(record).parts
    is_prompt = bool(parts) and metadata_value(parts[0], QUEUED) is True
    if parts and metadata_value(parts[0], _STRING) is True:
        record, parts = replace(record, parts=()), ()
    is_compaction = [part.part_type for part in parts] == [PartType.COMPACTION]
    # A compaction by the API is a block of its own type; one by Claude Code is a text of the user.
    is_summary = is_compaction and metadata_value(parts[0], COMPACTED) is not True
    row = _summary_row(parts[0]) if is_summary else to_anthropic(replace(record, metadata=metadata))
    return restored(_plain_queued(record, row) if is_prompt else _plain(record, row), rest)


def _from_queued(line: Mapping[str, Any]) -> NewMessage | None:
    attached = line["attachment"]
    row = {"role": Role.USER.value, "content": attached.get("prompt")}
    message = from_anthropic(row)
    parts = message.parts or _in_parts(message)
    kinds = {part.part_type for part in parts}
    if not kinds <= {PartType.TEXT, PartType.FILE} or not (PartType.FILE in kinds or flattened(parts).strip()):
        return None
    origin = attached.get("origin")
    is_of_others = isinstance(origin, Mapping) and str(origin.get("kind")) in _OTHERS
    message = _marked(message, is_meta=is_of_others or attached.get("isMeta") is True)
    first, *others = message.parts or parts
    message = replace(
        message, parts=(with_key(first, QUEUED, True), *others), created_at=Fields(line).moment("timestamp")
    )
    return with_remainder(message, NOTE, line, _plain_queued(message, row))


def _marked(message: NewMessage, *, is_meta: bool) -> NewMessage:
    """Mark the texts of a user's message that Claude Code wrote as synthetic."""
    in_parts = replace(message, parts=message.parts or _in_parts(message))
    marked = with_synthetic(in_parts, lambda text: is_meta or is_added(text))
    return message if marked is in_parts else marked


def _in_parts(message: NewMessage) -> tuple[NewPart]:
    return (NewPart(PartType.TEXT, text_content=message.content, metadata={_STRING: True}),)


def is_added(text: str) -> bool:
    """Whether Claude Code wrote a text; the arguments of a command are the user's."""
    return bool(_WRITTEN_BY_HOST.match(text)) and not _ARGUMENTS_OF_USER.search(text)


def _plain(message: NewMessage | MessageRecord, row: Mapping[str, Any]) -> dict[str, Any]:
    timestamp = timestamp_of(message.created_at)
    return {"type": row["role"], "message": row, "timestamp": timestamp}


def _plain_queued(message: NewMessage | MessageRecord, row: Mapping[str, Any]) -> dict[str, Any]:
    attached = {"type": "queued_command", "prompt": row["content"]}
    return {"type": "attachment", "attachment": attached, "timestamp": timestamp_of(message.created_at)}


def _summary_row(part: NewPart) -> dict[str, Any]:
    return {"role": Role.USER.value, "content": part.text_content}

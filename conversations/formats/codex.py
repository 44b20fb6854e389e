"""Read and write Codex's transcripts: items of OpenAI's Responses API. Pure.

    {"timestamp", "type": "response_item", "payload": {an item}}

The first line, `session_meta`, names the session. A `compacted` line has the text with which Codex replaced its own
context. Lines of other types, such as `event_msg`, repeat items or hold no message.

Texts that Codex wrote in the user's place, such as its environment, are marked as synthetic. Newer versions note the
origin of each text; in lines of older ones, such a text is recognized by its beginning.

The output of a command may come wrapped, as the text `{"output": ..., "metadata": {"exit_code": ...}}`. Then the result
is the output alone, and an error if the command failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conversations.formats.foreign_rows import (
    Fields,
    as_it_came,
    restored,
    split_remainder,
    timestamp_of,
    with_remainder,
    with_synthetic,
)
from conversations.formats.openai_chat import parsed, unparsed
from conversations.formats.openai_responses import RESULT, from_openai_responses, to_openai_responses
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role

NOTE = "codex"
# Metadata on a result that came wrapped: the object around it, and its JSON style.
_WRAPPED = "codex_wrapped"
_ITEM, _COMPACTED, _SESSION = "response_item", "compacted", "session_meta"
_WRITTEN_BY_HOST = re.compile(
    r"\s*(<(environment_context|user_instructions|turn_aborted|subagent_notification)>"
    r"|# AGENTS\.md instructions[^\n]*\n+<INSTRUCTIONS>)"
)
# The key of an item with the kinds and origins of its texts; origins that are not the user; and the kind of a text that
# Codex wrote about a command of the user.
_FACTS, _OTHERS, _OF_USER = "internal_chat_message_metadata_passthrough", ("harness", "skills", "tool"), "shell.user"


def is_line(row: Mapping[str, Any]) -> bool:
    """Whether this is a line of such a rollout, with a message or without."""
    return isinstance(row.get("payload"), Mapping) and "timestamp" in row


def session_of(line: Mapping[str, Any]) -> str:
    """Return the session that this line names for all following lines, or ""."""
    named = line["payload"].get("id") if line["type"] == _SESSION else None
    return named if isinstance(named, str) else ""


def parent_of(line: Mapping[str, Any]) -> str:
    """Return the parent session, if this line opens a sub-agent's session, or ""."""
    opened: Any = line["payload"] if line["type"] == _SESSION else {}
    found = opened.get("parent_thread_id")
    for key in ("source", "subagent", "thread_spawn", "parent_thread_id"):
        opened = opened.get(key) if isinstance(opened, Mapping) else None
    # Older rollouts have only the nested key. A fork names the thread that has its past.
    found = found or opened or _base_of(line).get("thread_id")
    return found if isinstance(found, str) and found != session_of(line) else ""


def rewound_to(line: Mapping[str, Any]) -> int | None:
    """Return the ordinal before which a rollout goes on, if it follows a rewind.

    Codex then begins another file of the same session. All lines have ordinals.
    """
    base = _base_of(line)
    end = base.get("end_ordinal_exclusive")
    return end if type(end) is int and base.get("thread_id") == session_of(line) else None


def _base_of(line: Mapping[str, Any]) -> Mapping[str, Any]:
    base = line["payload"].get("history_base") if line.get("type") == _SESSION else None
    return base if isinstance(base, Mapping) else {}


def from_codex(line: Mapping[str, Any]) -> NewMessage | None:
    """Read a line, if it holds a message; ValueError names the field that is wrong."""
    if line["type"] == _COMPACTED:
        summary = Fields(line).inner("payload").text("message")
        message = NewMessage(Role.ASSISTANT, parts=(NewPart(PartType.COMPACTION, text_content=summary),))
    elif line["type"] == _ITEM:
        message = _from_item(line["payload"])
        if message.role is Role.USER:
            added = _texts_of_host(line["payload"])
            message = with_synthetic(message, lambda text: text in added or is_added(text))
    else:
        return None
    message = replace(message, created_at=Fields(line).moment("timestamp"))
    return with_remainder(message, NOTE, line, _plain(message, line["payload"]))


def to_codex(record: MessageRecord) -> dict[str, Any]:
    """Restore the line that a message was read from."""
    record = as_it_came(record)
    metadata, rest = split_remainder(record.metadata, NOTE)
    item = to_openai_responses(replace(record, metadata=metadata))
    if wrapping := metadata.get(_WRAPPED):
        item["output"] = unparsed({"output": item["output"], **wrapping["around"]}, wrapping["style"])
    return restored(_plain(record, item), rest)


def _from_item(item: Mapping[str, Any]) -> NewMessage:
    output = item.get("output") if item.get("type") == RESULT else None
    around, style = parsed(output) if isinstance(output, str) else (None, None)
    if not isinstance(around, dict) or next(iter(around), None) != "output" or not isinstance(around["output"], str):
        return from_openai_responses(item)
    message = from_openai_responses({**item, "output": around.pop("output")})
    metadata = around.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("exit_code"):
        [printed] = message.parts
        failed = replace(printed, tool_output=None, tool_error=printed.tool_output, tool_status="error")
        message = replace(message, parts=(failed,))
    return replace(message, metadata={**(message.metadata or {}), _WRAPPED: {"around": around, "style": style}})


def is_added(text: str) -> bool:
    """Whether Codex wrote a text of the user, as its beginning shows."""
    return bool(_WRITTEN_BY_HOST.match(text))


def _texts_of_host(item: Mapping[str, Any]) -> set[str]:
    """Return the texts of a user's item that Codex notes as not the user's."""
    facts = item.get(_FACTS)
    noted = facts if isinstance(facts, Mapping) else {}
    lists = [item.get("content"), noted.get("content_item_kinds"), noted.get("content_item_metadata")]
    if not all(isinstance(each, list) for each in lists):
        return set()
    return {
        str(piece.get("text"))
        for piece, kind, origin in zip(*lists, strict=False)
        if _origin_of(origin) in _OTHERS and not str(kind).startswith(_OF_USER)
    }


def _origin_of(facts: Any) -> Any:
    origin = facts.get("provenance") if isinstance(facts, Mapping) else None
    return origin.get("type") if isinstance(origin, Mapping) else None


def _plain(message: NewMessage | MessageRecord, item: Mapping[str, Any]) -> dict[str, Any]:
    timestamp = timestamp_of(message.created_at)
    if [part.part_type for part in message.parts] == [PartType.COMPACTION]:
        return {"timestamp": timestamp, "type": _COMPACTED, "payload": {"message": message.parts[0].text_content}}
    return {"timestamp": timestamp, "type": _ITEM, "payload": item}

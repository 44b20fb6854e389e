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
# The key of an item with the kinds and origins of its texts.
_FACTS = "internal_chat_message_metadata_passthrough"
# Origins that are not the user.
_OTHERS = ("harness", "skills", "tool")
# The beginning of the kinds of texts that Codex wrote about a command of the user.
_OF_USER = "shell.user"
# The end of the name of a file with which Codex goes on after a rewind: the session's id and the file's own id.
_LATER_FILE = r"{session}_[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$"


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
    # Older rollouts have only the nested key. A fork without a base is a full copy of its past.
    found = found or opened or (_base_of(line) and line["payload"].get("forked_from_id"))
    return found if isinstance(found, str) and found != session_of(line) else ""


def rewound_to(line: Mapping[str, Any], name: str) -> int | None:
    """Return the ordinal before which a file goes on, if it follows a rewind.

    Codex then begins another file of the same session. The file has a base, unless the rewind was to the first prompt;
    but a fork has a base, too. `name` is that of the file, without suffixes.
    """
    session = session_of(line) if line.get("type") == _SESSION and is_line(line) else ""
    if not session:
        return None
    base = _base_of(line)
    is_later = re.search(_LATER_FILE.format(session=re.escape(session)), name)
    if not is_later and (not base or line["payload"].get("forked_from_id")):
        return None
    end = base.get("end_ordinal_exclusive", 0)
    return end if type(end) is int else None


def has_ordinal(row: Any) -> bool:
    """Whether this is a line of a version of Codex that numbers its lines."""
    return isinstance(row, Mapping) and is_line(row) and "ordinal" in row


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
            message = _with_origins(with_synthetic(message, is_added), line["payload"])
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


def _with_origins(message: NewMessage, item: Mapping[str, Any]) -> NewMessage:
    """Mark the texts of a user's item that Codex notes as not the user's."""
    facts = item.get(_FACTS)
    noted = facts if isinstance(facts, Mapping) else {}
    lists = [item.get("content"), noted.get("content_item_kinds"), noted.get("content_item_metadata")]
    if not all(isinstance(each, list) for each in lists):
        return message
    kinds_and_origins = zip(*lists[1:], strict=False)
    parts = list(message.parts)
    # Each piece of the content is one part.
    for place, (part, (kind, origin)) in enumerate(zip(parts, kinds_and_origins, strict=False)):
        is_of_host = _origin_of(origin) in _OTHERS and not str(kind).startswith(_OF_USER)
        if is_of_host and part.part_type is PartType.TEXT:
            parts[place] = replace(part, is_synthetic=True)
    return replace(message, parts=tuple(parts))


def _origin_of(facts: Any) -> Any:
    origin = facts.get("provenance") if isinstance(facts, Mapping) else None
    return origin.get("type") if isinstance(origin, Mapping) else None


def _plain(message: NewMessage | MessageRecord, item: Mapping[str, Any]) -> dict[str, Any]:
    timestamp = timestamp_of(message.created_at)
    if [part.part_type for part in message.parts] == [PartType.COMPACTION]:
        return {"timestamp": timestamp, "type": _COMPACTED, "payload": {"message": message.parts[0].text_content}}
    return {"timestamp": timestamp, "type": _ITEM, "payload": item}

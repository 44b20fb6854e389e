"""Lines of the rollouts that Codex keeps of its sessions: an item of OpenAI's Responses API, and when it was. Pure.

    {"timestamp", "type": "response_item", "payload": {an item}}

The first line, `session_meta`, names the session. `compacted` tells that Codex cut its own context, and what it put in
place of it. Lines of other types, such as `event_msg`, say again what items say, or hold no message.

What a command printed may come wrapped, `{"output": ..., "metadata": {"exit_code": ...}}` as a text; then the result is
what was printed, or an error where the command failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conversations.formats.fields import moment, read, timestamp_of
from conversations.formats.openai_chat import parsed, unparsed
from conversations.formats.openai_responses import RESULT, from_openai_responses, to_openai_responses
from conversations.formats.remainder import remainder, restored, split_note, with_note
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role

NOTE = "codex"
# On a result that came wrapped: what was around it, and how that was written.
_WRAPPED = "codex_wrapped"
_ITEM, _COMPACTED, _SESSION = "response_item", "compacted", "session_meta"


def is_line(row: Any) -> bool:
    """Whether this is a line of such a rollout, with a message or without."""
    is_envelope = isinstance(row, Mapping) and isinstance(row.get("type"), str) and "role" not in row
    return is_envelope and isinstance(row.get("payload"), Mapping) and "timestamp" in row


def holds_message(line: Mapping[str, Any]) -> bool:
    return line["type"] in (_ITEM, _COMPACTED)


def session_of(line: Mapping[str, Any]) -> str:
    """The session that the line names, for itself and all that follow; empty for most."""
    named = line["payload"].get("id") if line["type"] == _SESSION else None
    return named if isinstance(named, str) else ""


def from_codex(line: Mapping[str, Any]) -> NewMessage:
    """The message of a line that holds one; ValueError names the field that is not right."""
    if line["type"] == _COMPACTED:
        instead = read(line["payload"], "message", str, where="payload.")
        said = NewMessage(Role.ASSISTANT, parts=(NewPart(PartType.COMPACTION, text_content=instead),))
    else:
        said = _of_item(line["payload"])
    said = replace(said, created_at=moment(line, "timestamp"))
    return replace(said, metadata=with_note(said.metadata, NOTE, remainder(line, _plain(said, line["payload"]))))


def to_codex(record: MessageRecord) -> dict[str, Any]:
    """The line of a message that came as one: the same line."""
    metadata, rest = split_note(record.metadata, NOTE)
    item = to_openai_responses(replace(record, metadata=metadata))
    if wrapping := metadata.get(_WRAPPED):
        item["output"] = unparsed({"output": item["output"], **wrapping["around"]}, wrapping["style"])
    return restored(_plain(record, item), rest)


def _of_item(item: Mapping[str, Any]) -> NewMessage:
    output = item.get("output") if item.get("type") == RESULT else None
    around, style = parsed(output) if isinstance(output, str) else (None, None)
    if not isinstance(around, dict) or next(iter(around), None) != "output" or not isinstance(around["output"], str):
        return from_openai_responses(item)
    said = from_openai_responses({**item, "output": around.pop("output")})
    told = around.get("metadata")
    if isinstance(told, Mapping) and told.get("exit_code"):
        [printed] = said.parts
        failed = replace(printed, tool_output=None, tool_error=printed.tool_output, tool_status="error")
        said = replace(said, parts=(failed,))
    return replace(said, metadata={**(said.metadata or {}), _WRAPPED: {"around": around, "style": style}})


def _plain(message: NewMessage | MessageRecord, item: Mapping[str, Any]) -> dict[str, Any]:
    timestamp = timestamp_of(message.created_at)
    if [part.part_type for part in message.parts] == [PartType.COMPACTION]:
        return {"timestamp": timestamp, "type": _COMPACTED, "payload": {"message": message.parts[0].text_content}}
    return {"timestamp": timestamp, "type": _ITEM, "payload": item}

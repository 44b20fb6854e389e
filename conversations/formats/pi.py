"""Lines of the sessions of the coding agent pi, in a form of its own. Pure.

    {"type": "message", "timestamp", "message": {"role": "user" | "assistant" | "toolResult" | ..., "content"}}

The first line, `session`, names the session. Of other lines, `custom_message`, `branch_summary` and `compaction` hold
text for the model; the last is a summary by which pi replaced its own context, and is kept as that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from conversations.content.flattening import flattened
from conversations.formats.foreign_rows import (
    DATA_URL,
    a_call,
    a_result,
    as_results,
    is_result,
    moment,
    noted,
    parts_of,
    read,
    result_text,
    text_or_list,
    timestamp_of,
    with_kept,
)
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role

NOTE = "pi"
_MESSAGE, _CUSTOM, _COMPACTION, _BRANCH = "message", "custom_message", "compaction", "branch_summary"
_OTHERS = ("session", "model_change", "thinking_level_change", "custom", "label", "session_info")
_TYPES = frozenset({_MESSAGE, _CUSTOM, _COMPACTION, _BRANCH, *_OTHERS})
_RESULT = "toolResult"
# Any other, such as that of an extension, is given to a model as a user's.
_ROLES = {"assistant": Role.ASSISTANT, _RESULT: Role.TOOL}
_NAMES = {Role.USER: "user", Role.ASSISTANT: "assistant", Role.TOOL: _RESULT, Role.SYSTEM: "system"}
# The keys with the text of a message without content: a command that the user ran, and its output; a summary.
_TEXT_KEYS = ("command", "output", "summary")


def is_line(row: Any) -> bool:
    """Whether this is a line of such a session, with a message or without."""
    kind = row.get("type") if isinstance(row, Mapping) and "role" not in row and "timestamp" in row else None
    return isinstance(kind, str) and kind in _TYPES and (kind != _MESSAGE or isinstance(row.get(_MESSAGE), Mapping))


def holds_message(line: Mapping[str, Any]) -> bool:
    return line["type"] in (_MESSAGE, _CUSTOM, _COMPACTION, _BRANCH)


def session_of(line: Mapping[str, Any]) -> str:
    """Return the session that this line names for all that follow, if any."""
    named = line.get("id") if line["type"] == "session" else None
    return named if isinstance(named, str) else ""


def from_pi(line: Mapping[str, Any]) -> NewMessage:
    """Read a line that holds a message; ValueError names the field that is wrong."""
    if line["type"] == _COMPACTION:
        summary = read(line, "summary", str)
        message = NewMessage(Role.ASSISTANT, parts=(NewPart(PartType.COMPACTION, text_content=summary),))
    else:
        message = _message(line[_MESSAGE] if line["type"] == _MESSAGE else line)
    message = replace(message, created_at=moment(line, "timestamp"))
    return noted(message, NOTE, line, _plain(message))


def to_pi(record: MessageRecord) -> dict[str, Any]:
    """Return the line that a message came as."""
    return with_kept(_plain(record), record.metadata, NOTE)


def _message(row: Mapping[str, Any]) -> NewMessage:
    role = _ROLES.get(read(row, "role", str) or "", Role.USER)
    content = row.get("content")
    if content is None:
        content = "\n".join(text for key in _TEXT_KEYS if (text := read(row, key, str)))
    content = text_or_list(content)
    if role is Role.TOOL:
        return NewMessage(role, parts=_results(row, content))
    if isinstance(content, str):
        return NewMessage(role, content)
    parts = parts_of(content, _part, where="content")
    return NewMessage(role, content=None if parts else "", parts=parts)


def _results(row: Mapping[str, Any], content: str | list[Any]) -> tuple[NewPart, ...]:
    """Read what a tool returned: texts are results, other pieces stay beside them."""
    is_error = bool(read(row, "isError", bool))
    call_id, name = read(row, "toolCallId", str), read(row, "toolName", str)
    answer = partial(a_result, call_id=call_id, name=name, is_error=is_error)
    if isinstance(content, str):
        return (answer(content),)
    results = as_results(parts_of(content, _part, where="content"), answer)
    # Without a text there is a result, too.
    return results if any(part.part_type is PartType.TOOL for part in results) else (answer(""), *results)


def _part(block: dict[str, Any], *, where: str) -> NewPart:
    kind = read(block, "type", str, where=where)
    part = NewPart(PartType.FILE)
    if kind == "text":
        part = NewPart(PartType.TEXT, text_content=read(block, "text", str, where=where) or "")
    elif kind == "thinking":
        part = NewPart(PartType.REASONING, text_content=read(block, "thinking", str, where=where))
    elif kind == "toolCall":
        call_id, name = read(block, "id", str, where=where), read(block, "name", str, where=where)
        part = a_call(call_id, name, block.get("arguments"))
    elif kind == "image":
        mime = read(block, "mimeType", str, where=where) or ""
        data = read(block, "data", str, where=where) or ""
        part = NewPart(PartType.FILE, file_mime=mime, file_url=f"data:{mime};base64,{data}")
    return noted(part, NOTE, block, _block(part))


def _plain(message: NewMessage | MessageRecord) -> dict[str, Any]:
    timestamp = timestamp_of(message.created_at)
    parts = message.parts
    if [part.part_type for part in parts] == [PartType.COMPACTION]:
        return {"type": _COMPACTION, "timestamp": timestamp, "summary": parts[0].text_content}
    row: dict[str, Any] = {"role": _NAMES[message.role], "content": message.content}
    if parts:
        row["content"] = [_block(part) for part in parts]
    if message.role is Role.TOOL and parts:
        first = next((part for part in parts if part.part_type is PartType.TOOL), parts[0])
        row |= {"toolCallId": first.tool_call_id, "toolName": first.tool_name, "isError": first.tool_error is not None}
    return {"type": _MESSAGE, "timestamp": timestamp, _MESSAGE: row}


def _block(part: NewPart) -> dict[str, Any]:
    """Return the block of a part, the exact inverse of `_part`."""
    block: dict[str, Any]
    data = DATA_URL.fullmatch(part.file_url or "")
    if is_result(part):
        block = {"type": "text", "text": result_text(part)}
    elif part.part_type is PartType.TOOL:
        block = {"type": "toolCall", "id": part.tool_call_id, "name": part.tool_name, "arguments": part.tool_input}
    elif part.part_type is PartType.REASONING:
        block = {"type": "thinking", "thinking": part.text_content}
    elif part.part_type is PartType.FILE:
        block = {"type": "image", "mimeType": data[1], "data": data[2]} if data else {}
    else:
        block = {"type": "text", "text": part.text_content if part.part_type is PartType.TEXT else flattened([part])}
    return with_kept(block, part.metadata, NOTE)

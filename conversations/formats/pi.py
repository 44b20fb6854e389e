"""Lines of the sessions that the coding agent pi keeps: a message of its own kind, and when it was. Pure.

    {"type": "message", "timestamp", "message": {"role": "user" | "assistant" | "toolResult" | ..., "content"}}

The first line, `session`, names the session. Of other lines, `custom_message`, `branch_summary` and `compaction` hold
what a model was given to read; the last is a summary by which pi cut its own context, and is kept as that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conversations.content.flattening import flattened
from conversations.content.json_values import noun_of
from conversations.formats.fields import DATA_URL, moment, objects, read, timestamp_of
from conversations.formats.remainder import remainder, restored, split_note, with_note
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role

NOTE = "pi"
_MESSAGE, _CUSTOM, _COMPACTION, _BRANCH = "message", "custom_message", "compaction", "branch_summary"
_OTHERS = ("session", "model_change", "thinking_level_change", "custom", "label", "session_info")
_TYPES = frozenset({_MESSAGE, _CUSTOM, _COMPACTION, _BRANCH, *_OTHERS})
_RESULT = "toolResult"
# Any other, such as what an extension says, is given to a model as a user's.
_ROLES = {"assistant": Role.ASSISTANT, _RESULT: Role.TOOL}
_NAMES = {Role.USER: "user", Role.ASSISTANT: "assistant", Role.TOOL: _RESULT, Role.SYSTEM: "system"}
# What a message says that has no content: a command that the user ran, and what came of it; a summary.
_SAID = ("command", "output", "summary")


def is_line(row: Any) -> bool:
    """Whether this is a line of such a session, with a message or without."""
    kind = row.get("type") if isinstance(row, Mapping) and "role" not in row and "timestamp" in row else None
    return isinstance(kind, str) and kind in _TYPES and (kind != _MESSAGE or isinstance(row.get(_MESSAGE), Mapping))


def holds_message(line: Mapping[str, Any]) -> bool:
    return line["type"] in (_MESSAGE, _CUSTOM, _COMPACTION, _BRANCH)


def session_of(line: Mapping[str, Any]) -> str:
    """The session that the line names, for itself and all that follow; empty for most."""
    named = line.get("id") if line["type"] == "session" else None
    return named if isinstance(named, str) else ""


def from_pi(line: Mapping[str, Any]) -> NewMessage:
    """The message of a line that holds one; ValueError names the field that is not right."""
    if line["type"] == _COMPACTION:
        summary = read(line, "summary", str)
        said = NewMessage(Role.ASSISTANT, parts=(NewPart(PartType.COMPACTION, text_content=summary),))
    else:
        said = _message(line[_MESSAGE] if line["type"] == _MESSAGE else line)
    said = replace(said, created_at=moment(line, "timestamp"))
    return replace(said, metadata=with_note({}, NOTE, remainder(line, _plain(said))))


def to_pi(record: MessageRecord) -> dict[str, Any]:
    """The line of a message that came as one: the same line."""
    return restored(_plain(record), split_note(record.metadata, NOTE)[1])


def _message(row: Mapping[str, Any]) -> NewMessage:
    named = read(row, "role", str)
    role = _ROLES.get(named or "", Role.USER)
    content = row.get("content")
    if content is None:
        content = "\n".join(text for key in _SAID if (text := read(row, key, str)))
    if not isinstance(content, str | list):
        raise ValueError(f"content must be a text or a list, not {noun_of(content)}.")
    if role is Role.TOOL:
        return NewMessage(role, parts=_results(row, content))
    if isinstance(content, str):
        return NewMessage(role, content)
    blocks = objects(content, where="content")
    parts = tuple(_part(block, where=f"content[{place}].") for place, block in enumerate(blocks))
    return NewMessage(role, content=None if parts else "", parts=parts)


def _results(row: Mapping[str, Any], content: str | list[Any]) -> tuple[NewPart, ...]:
    """What a tool gave back: its texts as results, anything else beside them."""
    is_error = bool(read(row, "isError", bool))
    blank = NewPart(
        PartType.TOOL,
        tool_call_id=read(row, "toolCallId", str),
        tool_name=read(row, "toolName", str),
        tool_status="error" if is_error else "completed",
    )

    def answer(text: str) -> NewPart:
        return replace(blank, tool_error=text) if is_error else replace(blank, tool_output=text)

    if isinstance(content, str):
        return (answer(content),)
    blocks = objects(content, where="content")
    parts = [_part(block, where=f"content[{place}].") for place, block in enumerate(blocks)]
    results = [
        replace(answer(part.text_content or ""), metadata=part.metadata) if part.part_type is PartType.TEXT else part
        for part in parts
    ]
    # Without a text there is a result, too.
    return tuple(results) if any(part.part_type is PartType.TOOL for part in results) else (answer(""), *results)


def _part(block: dict[str, Any], *, where: str) -> NewPart:
    kind = read(block, "type", str, where=where)
    part = NewPart(PartType.FILE)
    if kind == "text":
        part = NewPart(PartType.TEXT, text_content=read(block, "text", str, where=where) or "")
    elif kind == "thinking":
        part = NewPart(PartType.REASONING, text_content=read(block, "thinking", str, where=where))
    elif kind == "toolCall":
        part = NewPart(
            PartType.TOOL,
            tool_call_id=read(block, "id", str, where=where),
            tool_name=read(block, "name", str, where=where),
            tool_input=block.get("arguments"),
            tool_status="pending",
        )
    elif kind == "image":
        mime = read(block, "mimeType", str, where=where) or ""
        data = read(block, "data", str, where=where) or ""
        part = NewPart(PartType.FILE, file_mime=mime, file_url=f"data:{mime};base64,{data}")
    return replace(part, metadata=with_note(None, NOTE, remainder(block, _block(part))))


def _plain(message: NewMessage | MessageRecord) -> dict[str, Any]:
    """What the columns say of a line, by the format's names."""
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
    """The block of one part, the exact inverse of `_part`."""
    block: dict[str, Any]
    data = DATA_URL.fullmatch(part.file_url or "")
    if part.part_type is PartType.TOOL and (part.tool_output is not None or part.tool_error is not None):
        block = {"type": "text", "text": part.tool_output if part.tool_error is None else part.tool_error}
    elif part.part_type is PartType.TOOL:
        block = {"type": "toolCall", "id": part.tool_call_id, "name": part.tool_name, "arguments": part.tool_input}
    elif part.part_type is PartType.REASONING:
        block = {"type": "thinking", "thinking": part.text_content}
    elif part.part_type is PartType.FILE:
        block = {"type": "image", "mimeType": data[1], "data": data[2]} if data else {}
    else:
        block = {"type": "text", "text": part.text_content if part.part_type is PartType.TEXT else flattened([part])}
    return restored(block, split_note(part.metadata, NOTE)[1])

"""Read and write lines of sessions of the coding agent pi. Pure.

    {"type": "message", "timestamp", "message": {"role": "user" | "assistant" | "toolResult" | ..., "content"}}

The first line, `session`, names the session. Lines of the types `custom_message`, `branch_summary` and `compaction`
have text for the model, too. A `compaction` is a summary that replaced pi's context: it becomes a compaction part. A
system message without `content` holds sections of pi's prompt, or a change of its tools: it is no message here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from conversations.content.flattening import flattened
from conversations.formats.foreign_rows import (
    DATA_URL,
    Fields,
    a_call,
    a_result,
    as_it_came,
    as_results,
    is_result,
    result_text,
    timestamp_of,
    with_kept,
    with_remainder,
)
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role

NOTE = "pi"
_MESSAGE, _CUSTOM, _COMPACTION, _BRANCH = "message", "custom_message", "compaction", "branch_summary"
_OTHERS = (
    "session", "model_change", "thinking_level_change", "custom", "label", "session_info", "usage", "context_edit",
)  # fmt: skip
_TYPES = frozenset({_MESSAGE, _CUSTOM, _COMPACTION, _BRANCH, *_OTHERS})
_RESULT = "toolResult"
# Messages of any other role, such as an extension's, become the user's.
_ROLES = {"assistant": Role.ASSISTANT, _RESULT: Role.TOOL}
_NAMES = {Role.USER: "user", Role.ASSISTANT: "assistant", Role.TOOL: _RESULT, Role.SYSTEM: "system"}
# The text keys of messages without `content`: a command that the user ran, its output, a summary.
_TEXT_KEYS = ("command", "output", "summary")


def is_line(row: Mapping[str, Any]) -> bool:
    """Whether this is a line of such a session, with a message or without."""
    is_whole = row["type"] != _MESSAGE or isinstance(row.get(_MESSAGE), Mapping)
    return "timestamp" in row and row["type"] in _TYPES and is_whole


def session_of(line: Mapping[str, Any]) -> str:
    """Return the session that this line names for all following lines, or ""."""
    named = line.get("id") if line["type"] == "session" else None
    return named if isinstance(named, str) else ""


def place_of(line: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the ids of a line and of its predecessor; None without these keys."""
    own, before = line.get("id"), line.get("parentId")
    if not isinstance(own, str) or "parentId" not in line:
        return None
    return own, before if isinstance(before, str) else ""


def from_pi(line: Mapping[str, Any]) -> NewMessage | None:
    """Read a line, if it holds a message; ValueError names the field that is wrong."""
    if line["type"] in _OTHERS or line["type"] == _MESSAGE and _is_prompt(line[_MESSAGE]):
        return None
    if line["type"] == _COMPACTION:
        summary = Fields(line).text("summary")
        message = NewMessage(Role.ASSISTANT, parts=(NewPart(PartType.COMPACTION, text_content=summary),))
    else:
        message = _message(Fields(line[_MESSAGE] if line["type"] == _MESSAGE else line))
    message = replace(message, created_at=Fields(line).moment("timestamp"))
    return with_remainder(message, NOTE, line, _plain(message))


def _is_prompt(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "system" and not message.get("content")


def to_pi(record: MessageRecord) -> dict[str, Any]:
    """Restore the line that a message was read from."""
    return with_kept(_plain(as_it_came(record)), record.metadata, NOTE)


def _message(row: Fields) -> NewMessage:
    role = _ROLES.get(row.text("role") or "", Role.USER)
    if row.values.get("content") is None:
        content: str | None = "\n".join(text for key in _TEXT_KEYS if (text := row.text(key)))
        parts: tuple[NewPart, ...] = ()
    else:
        given = row.content()
        content = given if isinstance(given, str) else None
        parts = tuple(map(_part, row.objects("content"))) if content is None else ()
    if role is Role.TOOL:
        return NewMessage(role, parts=_results(row, content, parts))
    return NewMessage(role, content=None if parts else content or "", parts=parts)


def _results(row: Fields, content: str | None, parts: Iterable[NewPart]) -> tuple[NewPart, ...]:
    """Read a tool's message: texts become results, other pieces stay FILE parts."""
    is_error = bool(row.read("isError", bool))
    answer = partial(a_result, call_id=row.text("toolCallId"), name=row.text("toolName"), is_error=is_error)
    results = as_results(parts, answer)
    # If there is no text, add an empty result.
    return results if any(part.part_type is PartType.TOOL for part in results) else (answer(content or ""), *results)


def _part(block: Fields) -> NewPart:
    kind = block.text("type")
    part = NewPart(PartType.FILE)
    if kind == "text":
        part = NewPart(PartType.TEXT, text_content=block.text("text") or "")
    elif kind == "thinking":
        part = NewPart(PartType.REASONING, text_content=block.text("thinking"))
    elif kind == "toolCall":
        part = a_call(block.text("id"), block.text("name"), block.values.get("arguments"))
    elif kind == "image":
        mime = block.text("mimeType") or ""
        part = NewPart(PartType.FILE, file_mime=mime, file_url=f"data:{mime};base64,{block.text('data') or ''}")
    return with_remainder(part, NOTE, block.values, _block(part))


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

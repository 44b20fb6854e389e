"""OpenAI chat-completions messages: what applications keep in their `messages` lists. Pure.

The arguments of a call are text in this format and come back byte for byte: as JSON where writing the JSON again gives
the same text, else as the text itself. A message that came in another form becomes the nearest chat message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conversations.content.flattening import flattened
from conversations.content.json_values import noun_of
from conversations.content.lossless_values import is_name
from conversations.formats.fields import as_message, choice, objects, read
from conversations.formats.remainder import remainder, restored, split_note, with_note
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role

NOTE = "openai_chat"
# On the only piece of a content list: a lone text is written as a plain string otherwise.
_LISTED = "openai_chat_listed"
# On a call: which of the usual ways of writing JSON its arguments follow, where it is not the first.
_STYLE = "openai_chat_arguments"
_STYLES: Mapping[str, dict[str, Any]] = {
    "spaced": {"ensure_ascii": False},
    "compact": {"ensure_ascii": False, "separators": (",", ":")},
    "spaced_ascii": {},
    "compact_ascii": {"separators": (",", ":")},
}
ROLES = {role.value: role for role in Role} | {"developer": Role.SYSTEM, "function": Role.TOOL}
_AUDIO = re.compile(r"data:audio/([^;,]*);base64,(.*)", re.DOTALL)


def from_openai_chat(row: Mapping[str, Any]) -> NewMessage:
    """The message of a row; ValueError names the field that is not right. Unknown keys are kept in the metadata."""
    as_message(row)
    role = choice(row.get("role"), ROLES, field="role")
    content = row.get("content")
    if content is not None and not isinstance(content, str | list):
        raise ValueError(f"content must be a text or a list, not {noun_of(content)}.")
    if content is None and role is not Role.ASSISTANT:
        raise ValueError(f"content must be given for the role {row['role']}.")
    name = read(row, "name", str)
    if role is Role.TOOL:
        parts = _results(content, call_id=read(row, "tool_call_id", str), name=name)
    else:
        calls = objects(read(row, "tool_calls", list), where="tool_calls")
        parts = (
            *_pieces(content, is_alone=not calls),
            *_refusal(row),
            *(_call(item, where=f"tool_calls[{place}].") for place, item in enumerate(calls)),
            *_legacy_call(row),
        )
    said = NewMessage(
        role=role,
        content=None if parts else content if isinstance(content, str) else "",
        parts=parts,
        author=name if role is not Role.TOOL and is_name(name) else None,
    )
    return replace(said, metadata=with_note({}, NOTE, remainder(row, _plain(said))))


def to_openai_chat(record: MessageRecord) -> dict[str, Any]:
    """The row of a message: of one that came as a chat message, the same row.

    Of any other what a chat message has place for: no reasoning, no bookkeeping. Raises ValueError for a message with
    the results of several calls, which takes several chat messages.
    """
    return restored(_plain(record), split_note(record.metadata, NOTE)[1])


def _plain(message: NewMessage | MessageRecord) -> dict[str, Any]:
    """What the columns say of a message, by the format's names."""
    row: dict[str, Any] = {"role": message.role.value}
    if message.role is Role.TOOL:
        return row | _plain_result(message)
    calls = [part for part in message.parts if _is_call(part)]
    pieces = [part for part in message.parts if not _is_call(part)]
    row["content"] = _plain_content(pieces) if message.parts else message.content
    if message.author is not None:
        row["name"] = message.author
    if calls:
        row["tool_calls"] = [_call_item(part) for part in calls]
    return row


def _plain_content(pieces: list[NewPart]) -> str | list[dict[str, Any]] | None:
    items = [item for part in pieces if (item := _piece_item(part)) is not None]
    if (
        len(items) == 1
        and items[0].keys() == {"type", "text"}
        and not any(_marks(part).get(_LISTED) for part in pieces)
    ):
        return str(items[0]["text"])
    return items or None


def _marks(part: NewPart) -> Mapping[str, Any]:
    return part.metadata if isinstance(part.metadata, Mapping) else {}


def _plain_result(message: NewMessage | MessageRecord) -> dict[str, Any]:
    results = [part for part in message.parts if part.part_type is PartType.TOOL]
    if len({part.tool_call_id for part in results}) > 1:
        raise ValueError("The message holds the results of several calls; a chat message holds one.")
    row: dict[str, Any] = {"content": _plain_content(list(message.parts)) if message.parts else message.content}
    if results and results[0].tool_call_id is not None:
        row["tool_call_id"] = results[0].tool_call_id
    if results and results[0].tool_name is not None:
        row["name"] = results[0].tool_name
    return row


def _is_call(part: NewPart) -> bool:
    return part.part_type is PartType.TOOL and part.tool_output is None and part.tool_error is None


def _results(content: str | list[Any] | None, *, call_id: str | None, name: str | None) -> tuple[NewPart, ...]:
    """What a tool gave back: its texts as results, anything else beside them."""
    result = NewPart(PartType.TOOL, tool_call_id=call_id, tool_name=name, tool_status="completed")
    return tuple(
        replace(result, tool_output=piece.text_content, metadata=piece.metadata)
        if piece.part_type is PartType.TEXT
        else piece
        for piece in _pieces(content, is_alone=False)
    ) or (replace(result, tool_output=""),)


def _pieces(content: str | list[Any] | None, *, is_alone: bool) -> tuple[NewPart, ...]:
    """The parts of a content; none of a text that is all there is, which needs no structure."""
    if content is None or isinstance(content, str):
        return (NewPart(PartType.TEXT, text_content=content),) if content is not None and not is_alone else ()
    items = objects(content, where="content")
    parts = [_piece(item, where=f"content[{place}].") for place, item in enumerate(items)]
    if len(parts) == 1:
        parts[0] = replace(parts[0], metadata={**(parts[0].metadata or {}), _LISTED: True})
    return tuple(parts)


def _piece(item: dict[str, Any], *, where: str) -> NewPart:
    part = NewPart(PartType.FILE)
    kind = read(item, "type", str, where=where)
    if kind in ("text", "refusal"):
        if (text := read(item, kind, str, where=where)) is None:
            raise ValueError(f"{where}{kind} must be given.")
        part = NewPart(PartType.TEXT, text_content=text)
    elif kind == "image_url":
        image = read(item, "image_url", dict, where=where) or {}
        url = read(image, "url", str, where=f"{where}image_url.")
        part = NewPart(PartType.FILE, file_url=url, file_mime="image/*")
    elif kind == "input_audio":
        audio = read(item, "input_audio", dict, where=where) or {}
        data = read(audio, "data", str, where=f"{where}input_audio.") or ""
        mime = f"audio/{read(audio, 'format', str, where=f'{where}input_audio.') or ''}"
        part = NewPart(PartType.FILE, file_url=f"data:{mime};base64,{data}", file_mime=mime)
    elif kind == "file":
        file = read(item, "file", dict, where=where) or {}
        part = NewPart(
            PartType.FILE,
            file_name=read(file, "filename", str, where=f"{where}file."),
            file_url=read(file, "file_data", str, where=f"{where}file."),
        )
    return replace(part, metadata=with_note(None, NOTE, remainder(item, _piece_item(part) or {})))


def _piece_item(part: NewPart) -> dict[str, Any] | None:
    """The content item of a part, the exact inverse of `_piece`; None for a part that says nothing here."""
    item: dict[str, Any]
    audio = _AUDIO.fullmatch(part.file_url or "")
    if part.part_type is not PartType.FILE:
        text = part.tool_output if part.part_type is PartType.TOOL else part.text_content
        if part.part_type is not PartType.TEXT and (part.part_type is not PartType.TOOL or text is None):
            text = flattened([part]) or None
        if text is None:
            return None
        item = {"type": "text", "text": text}
    elif audio:
        item = {"type": "input_audio", "input_audio": {"data": audio[2], "format": audio[1]}}
    elif (part.file_mime or "").startswith("image/"):
        item = {"type": "image_url", "image_url": {"url": part.file_url}}
    else:
        known = {"filename": part.file_name, "file_data": part.file_url}
        item = {"type": "file", "file": {key: value for key, value in known.items() if value is not None}}
    return restored(item, split_note(part.metadata, NOTE)[1])


def _refusal(row: Mapping[str, Any]) -> tuple[NewPart, ...]:
    """A refusal in place of a content is what was said; beside one it stays in the metadata."""
    refusal = read(row, "refusal", str)
    return (NewPart(PartType.TEXT, text_content=refusal),) if refusal and row.get("content") is None else ()


def _legacy_call(row: Mapping[str, Any]) -> tuple[NewPart, ...]:
    """The one call of a message from before there were several."""
    function = read(row, "function_call", dict)
    return (function_part(function, where="function_call."),) if function else ()


def _call(item: dict[str, Any], *, where: str) -> NewPart:
    if (custom := read(item, "custom", dict, where=where)) is not None:
        part = NewPart(
            PartType.TOOL,
            tool_name=read(custom, "name", str, where=f"{where}custom."),
            tool_input=read(custom, "input", str, where=f"{where}custom."),
            tool_status="pending",
        )
    else:
        function = read(item, "function", dict, where=where)
        if function is None:
            raise ValueError(f"{where}function must be given.")
        part = function_part(function, where=f"{where}function.")
    part = replace(part, tool_call_id=read(item, "id", str, where=where))
    return replace(part, metadata=with_note(part.metadata, NOTE, remainder(item, _call_item(part))))


def function_part(function: Mapping[str, Any], *, where: str) -> NewPart:
    """The call of a function that has a name and arguments; `arguments_of` gives those back."""
    arguments = read(function, "arguments", str, where=where)
    value, style = parsed(arguments) if arguments is not None else (None, None)
    return NewPart(
        PartType.TOOL,
        tool_name=read(function, "name", str, where=where),
        tool_input=value,
        tool_status="pending",
        metadata={_STYLE: style} if style else None,
    )


def _call_item(part: NewPart) -> dict[str, Any]:
    """The item of a call, the exact inverse of `_call`."""
    function = {"name": part.tool_name, "arguments": arguments_of(part)}
    known = {"id": part.tool_call_id, "type": "function", "function": function}
    return restored(known, split_note(part.metadata, NOTE)[1])


def arguments_of(part: NewPart) -> str:
    """The arguments of a call as the text that they came as, or as JSON if they came as something else."""
    arguments = part.tool_input
    if arguments is None:
        return "{}"
    if isinstance(arguments, str):
        return arguments
    return unparsed(arguments, _marks(part).get(_STYLE))


def parsed(text: str) -> tuple[Any, str | None]:
    """The value that a text is as JSON, with the style it is written in if it is not the first; or the text itself."""
    try:
        value = json.loads(text)
        if isinstance(value, dict | list):
            for style, options in _STYLES.items():
                if json.dumps(value, allow_nan=False, **options) == text:
                    return value, None if style == "spaced" else style
    except (ValueError, RecursionError):
        pass
    return text, None


def unparsed(value: Any, style: Any) -> str:
    """The text that such a value was read from."""
    return json.dumps(value, **_STYLES.get(str(style), _STYLES["spaced"]))

"""Messages of OpenAI's chat completions API and compatible ones. Pure.

A message of another format becomes the nearest chat message. The arguments of calls, here and in the Responses API, are
text and are restored byte for byte: they are stored as JSON if serializing that gives the same text, else as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from conversations.content.lossless_values import is_name, is_storable, storable_json
from conversations.formats.foreign_rows import (
    Fields,
    a_call,
    a_result,
    as_it_came,
    as_results,
    block_of_words,
    metadata_value,
    shown_text,
    split_remainder,
    with_kept,
    with_key,
    with_remainder,
)
from conversations.formats.pairing import IdRule, paired, tool_name
from conversations.formats.rendered import Item, Rendered, RepairKind, Repairs
from conversations.formats.turns import (
    Attachment,
    Block,
    Call,
    Result,
    Text,
    Turn,
    attachment_text,
    content_of,
    rendered,
    turns_of,
)
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role

NOTE = "openai_chat"
ROLES = {role.value: role for role in Role} | {"developer": Role.SYSTEM, "function": Role.TOOL}
# Keys, roles and types of pieces that only chat messages have.
KEYS = frozenset({"tool_calls", "tool_call_id", "function_call", "refusal"})
OWN_ROLES = frozenset({"developer", "tool", "function"})
PIECES = frozenset({"image_url", "input_audio", "file"})
# Types of pieces, each with a key by which it is certainly one of a chat message.
MARKS = {"image_url": "image_url", "file": "file"}
# Metadata on the only piece of a content list: without it, a lone text is written as a plain string.
_LISTED = "openai_chat_listed"
_AUDIO = re.compile(r"data:audio/([^;,]*);base64,(.*)", re.DOTALL)
_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
_SOUNDS = {"audio/wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}
_DETAILS = ("auto", "low", "high")
# Metadata of the Responses API on the first part of an item: the item's type, unless it follows from the parts.
ITEM_TYPE = "openai_responses_type"
# Metadata on a call: the JSON style of its arguments, unless it is the first of _STYLES.
_STYLE = "openai_chat_arguments"
_STYLES: Mapping[str, dict[str, Any]] = {
    "spaced": {"ensure_ascii": False},
    "compact": {"ensure_ascii": False, "separators": (",", ":")},
    "spaced_ascii": {},
    "compact_ascii": {"separators": (",", ":")},
}
_TOOL_NAMES = IdRule(longest=64)


def from_openai_chat(row: Mapping[str, Any]) -> NewMessage:
    """Read a row; ValueError names the field that is wrong.

    Unknown keys are kept in the metadata.
    """
    fields = Fields.of(row)
    role = fields.choice("role", ROLES)
    content = None if row.get("content") is None else fields.content()
    if content is None and role is not Role.ASSISTANT:
        raise ValueError(f"content must be given for the role {row['role']}.")
    name = fields.text("name")
    if role is Role.TOOL:
        answer = partial(a_result, call_id=fields.text("tool_call_id"), name=name)
        parts = as_results(_pieces(fields, is_alone=False), answer) or (answer(""),)
    else:
        calls, refusal, legacy = fields.objects("tool_calls"), fields.text("refusal"), fields.inner("function_call")
        # If there is content as well, the refusal stays in the metadata.
        is_refusal = bool(refusal) and content is None
        words = (NewPart(PartType.TEXT, text_content=refusal),) if is_refusal else _pieces(fields, is_alone=not calls)
        parts = (*words, *map(_call, calls), *([function_part(legacy)] if legacy.values else []))
    message = NewMessage(
        role=role,
        content=None if parts else content if isinstance(content, str) else "",
        parts=parts,
        author=name if role is not Role.TOOL and is_name(name) else None,
    )
    return with_remainder(message, NOTE, row, plain_row(message))


def to_openai_chat(record: MessageRecord) -> dict[str, Any]:
    """Return a message's row: the original row if it was read from a chat message.

    Reasoning and bookkeeping parts of other formats are left out. Raises ValueError for a message with the results of
    several calls, which needs several chat messages.
    """
    return with_kept(plain_row(as_it_came(record)), record.metadata, NOTE)


def plain_row(message: NewMessage | MessageRecord) -> dict[str, Any]:
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


def _plain_content(pieces: Sequence[NewPart]) -> str | list[dict[str, Any]] | None:
    items = [item for part in pieces if (item := _piece_item(part)) is not None]
    is_text = len(items) == 1 and items[0].keys() == {"type", "text"}
    if is_text and not any(metadata_value(part, _LISTED) for part in pieces):
        return str(items[0]["text"])
    return items or None


def _plain_result(message: NewMessage | MessageRecord) -> dict[str, Any]:
    results = [part for part in message.parts if part.part_type is PartType.TOOL]
    if len({part.tool_call_id for part in results}) > 1:
        raise ValueError("The message holds the results of several calls; a chat message holds one.")
    row: dict[str, Any] = {"content": _plain_content(message.parts) if message.parts else message.content}
    if results and results[0].tool_call_id is not None:
        row["tool_call_id"] = results[0].tool_call_id
    if results and results[0].tool_name is not None:
        row["name"] = results[0].tool_name
    return row


def _is_call(part: NewPart) -> bool:
    return part.part_type is PartType.TOOL and part.tool_output is None and part.tool_error is None


def _pieces(row: Fields, *, is_alone: bool) -> tuple[NewPart, ...]:
    """Read the pieces of `content`; a text needs no part if `is_alone`."""
    content = row.values.get("content")
    if isinstance(content, str):
        return () if is_alone else (NewPart(PartType.TEXT, text_content=content),)
    parts = tuple(map(_piece, row.objects("content")))
    return (with_key(parts[0], _LISTED, True),) if len(parts) == 1 else parts


def _piece(item: Fields) -> NewPart:
    kind = item.text("type")
    if kind in ("text", "refusal"):
        part = NewPart(PartType.TEXT, text_content=item.required_text(kind))
    elif kind == "image_url":
        part = NewPart(PartType.FILE, file_url=item.inner("image_url").text("url"), file_mime="image/*")
    elif kind == "input_audio":
        audio = item.inner("input_audio")
        data, mime = audio.text("data") or "", f"audio/{audio.text('format') or ''}"
        part = NewPart(PartType.FILE, file_url=f"data:{mime};base64,{data}", file_mime=mime)
    elif kind == "file":
        file = item.inner("file")
        part = NewPart(PartType.FILE, file_name=file.text("filename"), file_url=file.text("file_data"))
    else:
        part = block_of_words(item.values)
    return with_remainder(part, NOTE, item.values, _piece_item(part))


def _piece_item(part: NewPart) -> dict[str, Any] | None:
    """Return the content item of a part, if any: the exact inverse of `_piece`."""
    item: dict[str, Any]
    audio = _AUDIO.fullmatch(part.file_url or "")
    if part.part_type is not PartType.FILE:
        if (text := shown_text(part)) is None:
            return None
        item = {"type": "text", "text": text}
    elif audio:
        item = {"type": "input_audio", "input_audio": {"data": audio[2], "format": audio[1]}}
    elif (part.file_mime or "").startswith("image/"):
        item = {"type": "image_url", "image_url": {"url": part.file_url}}
    else:
        known = {"filename": part.file_name, "file_data": part.file_url}
        item = {"type": "file", "file": {key: value for key, value in known.items() if value is not None}}
    return with_kept(item, part.metadata, NOTE)


def _call(item: Fields) -> NewPart:
    if item.read("custom", dict) is not None:
        custom = item.inner("custom")
        part = a_call(None, custom.text("name"), custom.text("input"))
    elif item.read("function", dict) is not None:
        part = function_part(item.inner("function"))
    else:
        raise ValueError(f"{item.where}function must be given.")
    part = replace(part, tool_call_id=item.text("id"))
    return with_remainder(part, NOTE, item.values, _call_item(part))


def _call_item(part: NewPart) -> dict[str, Any]:
    """Return the item of a call, the exact inverse of `_call`."""
    function = {"name": part.tool_name, "arguments": arguments_of(part)}
    known = {"id": part.tool_call_id, "type": "function", "function": function}
    return with_kept(known, part.metadata, NOTE)


def render_openai_chat(items: Iterable[Item]) -> Rendered:
    """Render an assembled context as messages: results follow their calls."""
    repairs = Repairs()
    turns = paired(turns_of(items, repairs), IdRule(longest=40), repairs)
    return rendered(((turn, message) for turn in turns for message in _messages(turn, repairs)), repairs)


def _messages(turn: Turn, repairs: Repairs) -> list[dict[str, Any]]:
    if turn.role is Role.TOOL:
        return [
            {"role": "tool", "tool_call_id": block.call_id, "content": _content(block.content, turn, repairs) or ""}
            for block in turn.blocks
            if isinstance(block, Result)
        ]
    message: dict[str, Any] = {"role": turn.role.value}
    content, calls = _content(turn.blocks, turn, repairs), turn.calls
    if content or not calls:
        message["content"] = content
    if turn.author is not None:
        if _NAME.fullmatch(turn.author) and is_storable(turn.author):
            message["name"] = turn.author
        else:
            repairs.note(RepairKind.DROPPED_NAME, turn.item_ids)
    if calls:
        message["tool_calls"] = [_shown_call(call, turn, repairs) for call in calls]
    return [message]


def _content(blocks: Iterable[Block], turn: Turn, repairs: Repairs) -> str | list[dict[str, Any]]:
    def shown(block: Text | Attachment) -> dict[str, Any]:
        if isinstance(block, Text):
            return {"type": "text", "text": block.text}
        piece = _shown_attachment(block) if turn.role is Role.USER else None
        return piece or {"type": "text", "text": attachment_text(block, turn, repairs)}

    return content_of(blocks, shown)


def _shown_attachment(block: Attachment) -> dict[str, Any] | None:
    url, data = block.part.file_url, block.data
    if block.is_image and (data or block.link("https", "http")):
        detail = _kept(block.part, "image_url").get("detail")
        return {"type": "image_url", "image_url": {"url": url} | ({"detail": detail} if detail in _DETAILS else {})}
    if data and data[0] in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": data[1], "format": _SOUNDS[data[0]]}}
    if data and not data[0].startswith(("audio/", "video/")):
        return {"type": "file", "file": {"filename": block.name, "file_data": url}}
    file_id = _kept(block.part, "file").get("file_id")
    if isinstance(file_id, str) and not url:
        return {"type": "file", "file": {"file_id": file_id}}
    return None


def _kept(part: NewPart, key: str) -> Mapping[str, Any]:
    """Return an attachment's keys that have no column, such as its detail."""
    kept: Any = part.metadata
    for step in (NOTE, "inside", key, "add"):
        kept = kept.get(step) if isinstance(kept, Mapping) else None
    return kept if isinstance(kept, Mapping) else {}


def _shown_call(call: Call, turn: Turn, repairs: Repairs) -> dict[str, Any]:
    name, arguments = name_and_arguments(call, turn, repairs)
    if is_custom(call.part):
        return {"id": call.shown_id, "type": "custom", "custom": {"name": name, "input": arguments}}
    shown = {"id": call.shown_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    # The signature of a thought: Gemini refuses its own call without it.
    extra = split_remainder(call.part.metadata, NOTE)[1].get("add", {}).get("extra_content")
    is_of_gemini = isinstance(extra, dict) and "google" in extra
    return shown | ({"extra_content": {"google": storable_json(extra["google"])}} if is_of_gemini else {})


def function_part(function: Fields) -> NewPart:
    """Read a function call from its name and arguments."""
    arguments = function.text("arguments")
    value, style = parsed(arguments) if arguments is not None else (None, None)
    return a_call(None, function.text("name"), value, metadata={_STYLE: style} if style else None)


def arguments_of(part: NewPart) -> str:
    """Return the arguments of a call: the original text, or JSON if there was none."""
    arguments = part.tool_input
    if arguments is None:
        return "{}"
    if isinstance(arguments, str):
        return arguments
    return unparsed(arguments, metadata_value(part, _STYLE))


def parsed(text: str) -> tuple[Any, str | None]:
    """Parse a text as JSON if serializing the value restores the same text.

    Returns the value and the name of its style in _STYLES (None for the first style). If no style restores the text,
    returns the text itself and None.
    """
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
    """Serialize a value that `parsed` returned, in its style."""
    return json.dumps(value, **_STYLES.get(str(style), _STYLES["spaced"]))


def is_custom(call: NewPart) -> bool:
    """Whether a call is one of a custom tool, whose input is text and not JSON."""
    of_chat = split_remainder(call.metadata, NOTE)[1].get("add", {})
    return metadata_value(call, ITEM_TYPE) == "custom_tool_call" or of_chat.get("type") == "custom"


def name_and_arguments(call: Call, turn: Turn, repairs: Repairs) -> tuple[str, str]:
    """Return the name and the arguments of a call in a form that OpenAI accepts."""
    name = tool_name(call, _TOOL_NAMES, turn.item_ids, repairs)
    return name, repairs.sendable(arguments_of(call.part), turn.item_ids[0])

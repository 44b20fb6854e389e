"""An assembled context as the messages of OpenAI's chat completions, and of the many APIs made after it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from conversations.content.lossless_values import is_storable
from conversations.formats import arguments_of
from conversations.formats.openai_chat import NOTE
from conversations.formats.openai_responses import is_custom
from conversations.types import Role
from retrieval.assembly.types import AssembledItem, RepairKind
from retrieval.formats.attachments import data_of, is_image, link_of, name_of, stand_in, vendor_keys
from retrieval.formats.pairing import IdRule, paired, tool_name
from retrieval.formats.rendered import Rendered, Repairs, content_of
from retrieval.formats.turns import Attachment, Block, Call, Result, Text, Turn, turns_of

CALL_IDS = IdRule(longest=40)
TOOL_NAMES = IdRule(longest=64)
_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
_SOUNDS = {"audio/wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}
_DETAILS = ("auto", "low", "high")


def as_openai(items: Iterable[AssembledItem]) -> Rendered:
    """The items as chat messages: each call of a tool with its results right behind it, nothing without words."""
    repairs = Repairs()
    messages: list[dict[str, Any]] = []
    sources: list[tuple[str, ...]] = []
    for turn in paired(turns_of(items, repairs), CALL_IDS, repairs):
        for message in _messages(turn, repairs):
            messages.append(message)
            sources.append(turn.item_ids)
    return Rendered(messages=tuple(messages), sources=tuple(sources), repairs=repairs.as_records())


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
        message["tool_calls"] = [_call(call, turn, repairs) for call in calls]
    return [message]


def _content(blocks: Sequence[Block], turn: Turn, repairs: Repairs) -> str | list[dict[str, Any]]:
    return content_of([_piece(block, turn, repairs) for block in blocks if isinstance(block, Text | Attachment)])


def _piece(block: Text | Attachment, turn: Turn, repairs: Repairs) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    piece = _attachment(block) if turn.role is Role.USER else None
    if piece is None:
        repairs.note(RepairKind.ATTACHMENT_AS_TEXT, turn.item_ids)
        return {"type": "text", "text": stand_in(block.part)}
    return piece


def _attachment(block: Attachment) -> dict[str, Any] | None:
    part, data = block.part, data_of(block.part)
    if is_image(part) and (data or link_of(part, "https", "http")):
        image = {"url": part.file_url}
        detail = vendor_keys(part, NOTE, "image_url").get("detail")
        return {"type": "image_url", "image_url": image | ({"detail": detail} if detail in _DETAILS else {})}
    if data and data[0] in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": data[1], "format": _SOUNDS[data[0]]}}
    if data and not data[0].startswith(("audio/", "video/")):
        return {"type": "file", "file": {"filename": name_of(part), "file_data": part.file_url}}
    file_id = vendor_keys(part, NOTE, "file").get("file_id")
    if isinstance(file_id, str) and not part.file_url:
        return {"type": "file", "file": {"file_id": file_id}}
    return None


def _call(call: Call, turn: Turn, repairs: Repairs) -> dict[str, Any]:
    name = tool_name(call, TOOL_NAMES, turn.item_ids, repairs)
    arguments = repairs.sendable(arguments_of(call.part), turn.item_ids[0])
    if is_custom(call.part):
        return {"id": call.shown_id, "type": "custom", "custom": {"name": name, "input": arguments}}
    return {"id": call.shown_id, "type": "function", "function": {"name": name, "arguments": arguments}}

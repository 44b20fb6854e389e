"""An assembled context as the system text and the messages of Anthropic's Messages API. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conversations.content.lossless_values import storable_json
from conversations.formats import signed_thought
from conversations.types import NewPart, Role
from retrieval.assembly.types import AssembledItem, RepairKind
from retrieval.formats.attachments import data_of, is_image, link_of, media_type_of, stand_in
from retrieval.formats.pairing import IdRule, paired, tool_name
from retrieval.formats.rendered import Rendered, Repairs
from retrieval.formats.turns import Attachment, Block, Call, Result, Text, Thought, Turn, led_somewhere, turns_of

NAMES = IdRule(longest=64)
START = "[The conversation began before this; what was said before is not shown.]"
EMPTY_ERROR = "[The tool failed and said nothing.]"
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_PDF = "application/pdf"


def as_anthropic(items: Iterable[AssembledItem]) -> Rendered:
    """The items as messages: roles in turn, the user first, results at the head of the turn after their calls."""
    repairs = Repairs()
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    # The items of each message, in order; of those that are merged, once more.
    sources: list[dict[str, None]] = []
    merged: list[dict[str, None]] = []
    for turn in led_somewhere(paired(turns_of(items, repairs, thought_of=_thought_of), NAMES, repairs), repairs):
        blocks = _blocks(turn, repairs)
        if not blocks:
            repairs.note(RepairKind.DROPPED_EMPTY, turn.item_ids)
            continue
        if turn.author is not None:
            repairs.note(RepairKind.DROPPED_NAME, turn.item_ids)
        if turn.role is Role.SYSTEM:
            if messages:
                repairs.note(RepairKind.MOVED_SYSTEM, turn.item_ids)
            system += blocks
            continue
        role = "assistant" if turn.role is Role.ASSISTANT else "user"
        if not messages and role == "assistant":
            repairs.note(RepairKind.ADDED_START, turn.item_ids)
            messages.append({"role": "user", "content": [{"type": "text", "text": START}]})
            sources.append({})
        if messages and messages[-1]["role"] == role:
            if not merged or merged[-1] is not sources[-1]:
                merged.append(sources[-1])
            messages[-1]["content"] += blocks
            sources[-1].update(dict.fromkeys(turn.item_ids))
        else:
            messages.append({"role": role, "content": blocks})
            sources.append(dict.fromkeys(turn.item_ids))
    for item_ids in merged:
        repairs.note(RepairKind.MERGED_NEIGHBOURS, item_ids)
    _strip_end(messages, list(sources[-1]) if sources else [], repairs)
    return Rendered(
        messages=tuple(messages), sources=tuple(map(tuple, sources)), system=tuple(system), repairs=repairs.as_records()
    )


def _thought_of(item: AssembledItem, part: NewPart) -> Mapping[str, Any] | None:
    return signed_thought(part)


def _strip_end(messages: Sequence[dict[str, Any]], item_ids: Sequence[str], repairs: Repairs) -> None:
    """An assistant's last word is a beginning that the model goes on with, and must not end in white space."""
    last = messages[-1]["content"][-1] if messages and messages[-1]["role"] == "assistant" else {}
    if last.get("type") == "text" and last["text"] != last["text"].rstrip():
        repairs.note(RepairKind.STRIPPED_END, item_ids[-1:])
        last["text"] = last["text"].rstrip()


def _blocks(turn: Turn, repairs: Repairs) -> list[dict[str, Any]]:
    blocks = (_block(block, turn, repairs) for block in turn.blocks)
    return [block for block in blocks if block is not None]


def _block(block: Block, turn: Turn, repairs: Repairs) -> dict[str, Any] | None:
    match block:
        case Text(text):
            if not text.strip():
                repairs.note(RepairKind.DROPPED_EMPTY, turn.item_ids)
                return None
            return {"type": "text", "text": text}
        case Attachment():
            return _attachment(block, turn, repairs)
        case Call():
            name = tool_name(block, NAMES, turn.item_ids, repairs)
            return {"type": "tool_use", "id": block.shown_id, "name": name, "input": _input(block, turn, repairs)}
        case Result():
            return _result(block, turn, repairs)
        case Thought(thought):
            # The API refuses calls without the thoughts that led to them, and thoughts that were altered.
            return dict(thought)


def _result(result: Result, turn: Turn, repairs: Repairs) -> dict[str, Any]:
    content = [_block(each, turn, repairs) for each in result.content]
    shown = [each for each in content if each is not None]
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call_id}
    if shown:
        is_text = len(shown) == 1 and shown[0]["type"] == "text"
        block["content"] = shown[0]["text"] if is_text else shown
    if result.is_error:
        block["content"] = block.get("content", EMPTY_ERROR)
        block["is_error"] = True
    return block


def _attachment(block: Attachment, turn: Turn, repairs: Repairs) -> dict[str, Any]:
    part, data = block.part, data_of(block.part)
    if turn.role in (Role.USER, Role.TOOL):
        link = link_of(part, "https")
        source: dict[str, Any] | None = None
        if data and data[0] in (*_IMAGES, _PDF):
            source = {"type": "base64", "media_type": data[0], "data": data[1]}
        elif link and (is_image(part) or media_type_of(part) == _PDF):
            source = {"type": "url", "url": link}
        if source is not None:
            return {"type": "image" if is_image(part) else "document", "source": source}
    repairs.note(RepairKind.ATTACHMENT_AS_TEXT, turn.item_ids)
    return {"type": "text", "text": stand_in(part)}


def _input(call: Call, turn: Turn, repairs: Repairs) -> dict[str, Any]:
    """The input of a call as the object that the API demands."""
    given = call.part.tool_input
    if given is None:
        return {}
    value = _object(given) if isinstance(given, str) else given
    if not isinstance(value, dict):
        repairs.note(RepairKind.WRAPPED_INPUT, turn.item_ids)
        value = {"input": given}
    sendable = storable_json(value)
    if sendable != value:
        repairs.note(RepairKind.REPLACED_CHARACTERS, turn.item_ids)
    return dict(sendable)


def _object(text: str) -> Any:
    """The object that a text is, if it is one that can be written again."""
    try:
        value = json.loads(text, parse_constant=_refuse)
        storable_json(value)
    except (ValueError, RecursionError):
        return None
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON.")

"""Messages of Anthropic's Messages API, as agents send and receive them. Pure.

A user's message that has only tool results gets the role `tool`. One that has other blocks as well keeps its role.
Keys of a block without a column, such as the signature of a thought, are restored exactly. A block of an unknown type
is kept whole, and its words are a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from conversations.content.flattening import flattened
from conversations.content.lossless_values import is_storable, storable_json
from conversations.formats.foreign_rows import (
    DATA_URL,
    Fields,
    a_call,
    a_result,
    as_it_came,
    block_of_words,
    is_result,
    metadata_value,
    result_text,
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
    Thought,
    Turn,
    attachment_text,
    move_trailing_reasoning,
    turns_of,
)
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role

NOTE = "anthropic"
# Metadata on the first part of a result whose content is a list: the number of its parts, and the block's other keys.
_PIECES = "anthropic_pieces"
_RESULT = "anthropic_result"
# Metadata on a text that came as a document block, and is written as one again.
_DOCUMENT = "anthropic_document"
# Metadata on a compaction block that this API made: the API accepts no other compaction blocks.
COMPACTED = "anthropic_compaction"
ROLES = {role.value: role for role in (Role.USER, Role.ASSISTANT, Role.SYSTEM)}
_CALL, _ANSWER, _COMPACTION = "tool_use", "tool_result", "compaction"
# The types of reasoning blocks, and the keys that their model must get back.
_SIGNED = {"thinking": ("type", "thinking", "signature"), "redacted_thinking": ("type", "data")}
_ATTACHED = ("image", "document")
# Types of blocks that only messages of this API have.
TYPES = frozenset({_CALL, _ANSWER, *_SIGNED, *_ATTACHED, "server_tool_use", "mcp_tool_use"})
# Types of blocks, each with a key by which it is certainly one of this API.
MARKS = {
    **dict.fromkeys((_CALL, "server_tool_use", "mcp_tool_use"), "input"),
    **dict.fromkeys(_ATTACHED, "source"),
    _ANSWER: "tool_use_id",
    "thinking": "signature",
    "redacted_thinking": "data",
}
# The keys that hold text in the results of the vendor's server-side tools.
_WORD_KEYS = ("title", "url", "text", "stdout", "stderr", "error_code")

_NAMES = IdRule(longest=64)
START = "[The conversation began before this; what was said before is not shown.]"
EMPTY_ERROR = "[The tool failed and said nothing.]"
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_PDF = "application/pdf"


def from_anthropic(row: Mapping[str, Any]) -> NewMessage:
    """Read a row; ValueError names the field that is wrong.

    Unknown keys are kept in the metadata.
    """
    fields = Fields.of(row)
    role = fields.choice("role", ROLES)
    content = fields.content()
    blocks = fields.objects("content") if isinstance(content, list) else ()
    parts = tuple(part for block in blocks for part in _parts(block))
    if role is Role.USER and blocks and all(_type_of(block.values) == _ANSWER for block in blocks):
        role = Role.TOOL
    message = NewMessage(role, content=None if parts else content if isinstance(content, str) else "", parts=parts)
    return with_remainder(message, NOTE, row, plain_row(message))


def to_anthropic(record: MessageRecord) -> dict[str, Any]:
    """Return a message's row: the original row if it was read from this format."""
    return with_kept(plain_row(as_it_came(record)), record.metadata, NOTE)


def with_text(result: NewPart, text: str) -> NewPart:
    """Replace the text of a plain result; its original row is still restored."""
    rest = split_remainder(result.metadata, _RESULT)[1]
    rest = {**rest, "add": {**rest.get("add", {}), "content": result.tool_output}}
    return replace(with_key(result, _RESULT, rest), tool_output=text)


def plain_row(message: NewMessage | MessageRecord) -> dict[str, Any]:
    role = Role.USER if message.role is Role.TOOL else message.role
    return {"role": role.value, "content": list(_blocks(message.parts)) or message.content or ""}


def _type_of(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _parts(block: Fields) -> list[NewPart]:
    kind = block.text("type") or ""
    if kind.endswith(_ANSWER):
        return _result(block)
    if kind == "text":
        part = NewPart(PartType.TEXT, text_content=block.required_text("text"))
    elif kind in _SIGNED:
        part = NewPart(PartType.REASONING, text_content=block.text("thinking"))
    elif kind == _COMPACTION:
        part = NewPart(PartType.COMPACTION, text_content=block.text("content"), metadata={COMPACTED: True})
    elif kind.endswith(_CALL):
        part = a_call(block.text("id"), block.text("name"), block.values.get("input"))
    elif kind in _ATTACHED:
        part = _attachment(block, kind)
    else:
        part = block_of_words(block.values)
    return [with_remainder(part, NOTE, block.values, _block(part))]


def _attachment(block: Fields, kind: str) -> NewPart:
    source = block.inner("source")
    mime, data, title = source.text("media_type") or "", source.values.get("data"), block.values.get("title")
    name = title if isinstance(title, str) and title else None
    if source.values.get("type") == "base64" and isinstance(data, str):
        return NewPart(PartType.FILE, file_mime=mime, file_url=f"data:{mime};base64,{data}", file_name=name)
    if source.values.get("type") == "text" and isinstance(data, str):
        return NewPart(PartType.TEXT, text_content=data, metadata={_DOCUMENT: True})
    mime = "image/*" if kind == "image" else _PDF
    return NewPart(PartType.FILE, file_mime=mime, file_url=source.text("url"), file_name=name)


def _result(block: Fields) -> list[NewPart]:
    """Read a result block: texts become results, other pieces stay FILE parts.

    If the first piece is not a text, an empty result part is put before it.
    """
    is_error = bool(block.read("is_error", bool))
    answer = partial(a_result, call_id=block.text("tool_use_id"), is_error=is_error)
    content = block.values.get("content")
    if isinstance(content, list):
        parts = [_result_piece(piece, answer) for piece in block.objects("content")]
        is_led = bool(parts) and parts[0].part_type is PartType.TOOL
        parts = parts if is_led else [answer(""), *parts]
        parts[0] = with_key(parts[0], _PIECES, len(parts) if is_led else -len(parts))
    else:
        parts = [answer(content if isinstance(content, str) else _words_in(content))]
    [plain] = _blocks(parts)
    return [with_remainder(parts[0], _RESULT, block.values, plain), *parts[1:]]


def _result_piece(piece: Fields, answer: Callable[[str], NewPart]) -> NewPart:
    kind = _type_of(piece.values)
    if kind in _ATTACHED:
        return _parts(piece)[0]
    words = (
        piece.text("text") if kind == "text" else _words_in(piece.values) or block_of_words(piece.values).text_content
    )
    part = answer(words or "")
    return with_remainder(part, NOTE, piece.values, _block(part))


def _words_in(value: Any) -> str:
    """Return the text in the result of one of the vendor's server-side tools."""
    words: list[str] = []
    # No recursion, as nesting may be deep.
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += reversed(each)
        elif isinstance(each, Mapping):
            words += [each[key] for key in _WORD_KEYS if isinstance(each.get(key), str) and each[key]]
            waiting.append(each.get("content"))
    return "\n".join(words)


def _blocks(parts: Sequence[NewPart]) -> Iterator[dict[str, Any]]:
    """Write the blocks of parts, the exact inverse of `_parts`."""
    place = 0
    while place < len(parts):
        part = parts[place]
        count = 1
        if is_result(part):
            # `pieces` is negative if the first part is the empty result that `_result` added, and 0 for a plain text.
            pieces = metadata_value(part, _PIECES)
            pieces = pieces if type(pieces) is int else 0
            count = max(1, abs(pieces))
            yield _answer(parts[place : place + count], pieces)
        elif block := _block(part):
            yield block
        place += count


def _answer(parts: Sequence[NewPart], count: int) -> dict[str, Any]:
    first = parts[0]
    pieces = parts if count > 0 else parts[1:]
    content = [_block(piece) for piece in pieces] if count else result_text(first)
    known: dict[str, Any] = {"type": _ANSWER, "tool_use_id": first.tool_call_id, "content": content}
    return with_kept(known | ({} if first.tool_error is None else {"is_error": True}), first.metadata, _RESULT)


def _block(part: NewPart) -> dict[str, Any]:
    """Return the block of a part (a text block for a result), or an empty one."""
    block: dict[str, Any]
    data = DATA_URL.fullmatch(part.file_url or "")
    if is_result(part):
        block = {"type": "text", "text": result_text(part)}
    elif part.part_type is PartType.TOOL:
        block = {"type": _CALL, "id": part.tool_call_id, "name": part.tool_name, "input": part.tool_input}
    elif part.part_type is PartType.REASONING:
        block = {"type": "thinking", "thinking": part.text_content}
    elif part.part_type is PartType.FILE:
        source = {"type": "base64", "media_type": data[1], "data": data[2]} if data else {
            "type": "url", "url": part.file_url
        }  # fmt: skip
        kind = "image" if (part.file_mime or "").startswith("image/") else "document"
        block = {"type": kind, "source": source} | ({"title": part.file_name} if part.file_name else {})
    elif metadata_value(part, COMPACTED) is True:
        block = {"type": _COMPACTION, "content": part.text_content}
    elif metadata_value(part, _DOCUMENT) is True:
        source = {"type": "text", "media_type": "text/plain", "data": part.text_content}
        block = {"type": "document", "source": source}
    else:
        text = part.text_content if part.part_type is PartType.TEXT else flattened([part])
        block = {"type": "text", "text": text} if text else {}
    return with_kept(block, part.metadata, NOTE)


def render_anthropic(items: Iterable[Item]) -> Rendered:
    """Render an assembled context: roles alternate, results follow their calls."""
    repairs = Repairs()
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    # The item ids of each message, in order, and the indexes of the messages that were merged.
    sources: list[dict[str, None]] = []
    merged: dict[int, None] = {}
    turns = turns_of(items, repairs, thought_of=lambda _, part: signed_thought(part))
    for turn in move_trailing_reasoning(paired(turns, _NAMES, repairs), repairs):
        blocks = _shown_blocks(turn.blocks, turn, repairs)
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
            merged[len(messages) - 1] = None
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
            sources.append({})
        sources[-1].update(dict.fromkeys(turn.item_ids))
    for place in merged:
        repairs.note(RepairKind.MERGED_NEIGHBOURS, sources[place])
    _strip_end(messages, list(sources[-1]) if sources else [], repairs)
    return Rendered(
        messages=tuple(messages), sources=tuple(map(tuple, sources)), system=tuple(system), repairs=repairs.as_records()
    )


def signed_thought(part: NewPart) -> dict[str, Any] | None:
    """Return the signed reasoning block of a part, unchanged; None if not signed."""
    if part.part_type is not PartType.REASONING or not split_remainder(part.metadata, NOTE)[1]:
        return None
    block = _block(part)
    signed = {key: block.get(key) for key in _SIGNED.get(_type_of(block), ())}
    is_whole = all(isinstance(each, str) and is_storable(each) for each in signed.values())
    return signed if signed and is_whole else None


def _strip_end(messages: Sequence[dict[str, Any]], item_ids: Sequence[str], repairs: Repairs) -> None:
    """Strip white space at the end of an assistant's last text: the API refuses it."""
    last = messages[-1]["content"][-1] if messages and messages[-1]["role"] == "assistant" else {}
    if last.get("type") == "text" and last["text"] != last["text"].rstrip():
        repairs.note(RepairKind.STRIPPED_END, item_ids[-1:])
        last["text"] = last["text"].rstrip()


def _shown_blocks(blocks: Iterable[Block], turn: Turn, repairs: Repairs) -> list[dict[str, Any]]:
    return [shown for block in blocks if (shown := _shown(block, turn, repairs)) is not None]


def _shown(block: Block, turn: Turn, repairs: Repairs) -> dict[str, Any] | None:
    match block:
        case Text(text):
            if not text.strip():
                repairs.note(RepairKind.DROPPED_EMPTY, turn.item_ids)
                return None
            return {"type": "text", "text": text}
        case Attachment():
            return _shown_attachment(block, turn, repairs)
        case Call():
            name = tool_name(block, _NAMES, turn.item_ids, repairs)
            if _type_of(_block(block.part)).endswith(f"_{_CALL}"):
                repairs.note(RepairKind.SERVER_CALL, turn.item_ids)
            return {"type": _CALL, "id": block.shown_id, "name": name, "input": _input(block, turn, repairs)}
        case Result():
            return _shown_result(block, turn, repairs)
        case Thought(thought):
            # The API refuses calls without the thoughts that led to them, and thoughts that were altered.
            return dict(thought)


def _shown_result(result: Result, turn: Turn, repairs: Repairs) -> dict[str, Any]:
    shown = _shown_blocks(result.content, turn, repairs)
    block: dict[str, Any] = {"type": _ANSWER, "tool_use_id": result.call_id}
    if shown:
        is_text = len(shown) == 1 and shown[0]["type"] == "text"
        block["content"] = shown[0]["text"] if is_text else shown
    if result.is_error:
        block["content"] = block.get("content", EMPTY_ERROR)
        block["is_error"] = True
    return block


def _shown_attachment(block: Attachment, turn: Turn, repairs: Repairs) -> dict[str, Any]:
    data = block.data
    if turn.role in (Role.USER, Role.TOOL):
        link = block.link("https")
        source: dict[str, Any] | None = None
        if data and data[0] in (*_IMAGES, _PDF):
            source = {"type": "base64", "media_type": data[0], "data": data[1]}
        elif link and (block.is_image or block.media_type == _PDF):
            source = {"type": "url", "url": link}
        if source is not None:
            return {"type": "image" if block.is_image else "document", "source": source}
    return {"type": "text", "text": attachment_text(block, turn, repairs)}


def _input(call: Call, turn: Turn, repairs: Repairs) -> dict[str, Any]:
    """Return the input of a call as the object that the API demands."""
    given = call.part.tool_input
    if given is None:
        return {}
    value = _parsed(given) if isinstance(given, str) else given
    if not isinstance(value, dict):
        repairs.note(RepairKind.WRAPPED_INPUT, turn.item_ids)
        value = {"input": given}
    sendable = storable_json(value)
    if sendable != value:
        repairs.note(RepairKind.REPLACED_CHARACTERS, turn.item_ids)
    return dict(sendable)


def _parsed(text: str) -> Any:
    """Parse a text as JSON; None if it is invalid, or cannot be serialized again."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return value

"""Items of OpenAI's Responses API, as agents send and receive them. Pure.

Each item (reasoning, a call, a result) becomes one message; rendering joins them to turns again. A call of a tool that
the vendor runs, such as `web_search_call`, becomes a call of that name. Keys without a column, such as encrypted
reasoning, are restored exactly. An item of an unknown type is kept whole, but its text cannot be searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from conversations.content.lossless_values import is_storable
from conversations.formats.foreign_rows import (
    Fields,
    a_call,
    a_result,
    as_it_came,
    as_results,
    block_of_words,
    metadata_value,
    result_text,
    shown_text,
    split_remainder,
    with_kept,
    with_key,
    with_remainder,
)
from conversations.formats.openai_chat import ITEM_TYPE, arguments_of, function_part, is_custom, name_and_arguments
from conversations.formats.pairing import IdRule, paired
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
    content_of,
    move_trailing_reasoning,
    rendered,
    turns_of,
)
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role

NOTE = "openai_responses"
# Metadata on the first piece of a result that is a list: without it, a lone text is written as a plain string.
_LISTED = "openai_responses_listed"
# Metadata on the full text of reasoning, as opposed to a summary of it.
_IN_FULL = "openai_responses_in_full"
ROLES = {role.value: role for role in (Role.USER, Role.ASSISTANT, Role.SYSTEM)} | {"developer": Role.SYSTEM}
MESSAGE, REASONING, CALL, RESULT = "message", "reasoning", "function_call", "function_call_output"
_CALLS, _RESULTS = "_call", "_output"
_IMAGE_CALL = "image_generation_call"
# The key with the input of a call, by item type. For the vendor's other tools the key is `action`.
_INPUTS = {"custom_tool_call": "input", "apply_patch_call": "operation", "file_search_call": "queries",
           "code_interpreter_call": "code"}  # fmt: skip
WITH_ARGUMENTS = (CALL, "mcp_call")
# Types of pieces that only messages of this API have.
PIECES = frozenset({"input_text", "output_text", "input_image", "input_file"})
# The keys that hold text in the results of tools.
_WORD_KEYS = ("title", "filename", "text", "content", "logs", "stdout", "stderr", "message")
_PNG = re.compile(r"data:image/png;base64,(.*)", re.DOTALL)


def is_item(row: Any) -> bool:
    """Whether this is an item without a role, which only this API has."""
    kind = row.get("type") if isinstance(row, Mapping) and "role" not in row else None
    return isinstance(kind, str) and (kind == REASONING or kind.endswith((_CALLS, _RESULTS)))


def from_openai_responses(row: Mapping[str, Any]) -> NewMessage:
    """Read an item; ValueError names the field that is wrong.

    Unknown keys are kept in the metadata.
    """
    fields = Fields.of(row)
    kind = fields.text("type") or MESSAGE
    content = ""
    parts: tuple[NewPart, ...] = ()
    role = Role.ASSISTANT
    if kind == MESSAGE:
        role = fields.choice("role", ROLES)
        given = fields.content()
        if isinstance(given, str):
            content = given
        else:
            parts = tuple(_piece(piece, role) for piece in fields.objects("content"))
    elif kind == REASONING:
        parts = tuple(_thoughts(fields)) or (NewPart(PartType.REASONING),)
    elif kind.endswith(_RESULTS):
        role, parts = Role.TOOL, _result(fields, kind)
    elif kind.endswith(_CALLS):
        parts = (_call(fields, kind),)
    message = NewMessage(role=role, content=None if parts else content, parts=parts)
    return with_remainder(message, NOTE, row, plain_row(message))


def to_openai_responses(record: MessageRecord) -> dict[str, Any]:
    """Return a message's item: the original item if it was read from one.

    Raises ValueError for a message that needs several items: one with several calls or results, or with a call and
    other parts.
    """
    return with_kept(plain_row(as_it_came(record)), record.metadata, NOTE)


def plain_row(message: NewMessage | MessageRecord) -> dict[str, Any]:
    parts = message.parts
    calls = [part for part in parts if part.part_type is PartType.TOOL]
    if message.role is Role.TOOL and parts:
        if len({part.tool_call_id for part in calls}) > 1:
            raise ValueError("The message holds the results of several calls; an item holds one.")
        call_id = calls[0].tool_call_id if calls else None
        return {"type": _type_of(parts[0], RESULT), "call_id": call_id, "output": _plain_output(parts)}
    if parts and all(part.part_type is PartType.REASONING for part in parts):
        return _plain_thoughts(parts)
    if parts and metadata_value(parts[0], ITEM_TYPE) == _IMAGE_CALL:
        data = _PNG.fullmatch(parts[0].file_url or "")
        return {"type": _IMAGE_CALL, "result": data[1] if data else None}
    if calls:
        if len(parts) > 1:
            raise ValueError("The message holds a call beside other words; an item holds one of them.")
        return _plain_call(calls[0])
    row: dict[str, Any] = {"role": message.role.value}
    if not parts:
        return row | {"content": message.content}
    items = [item for part in parts if (item := _piece_item(part, message.role))]
    return {"type": MESSAGE} | row | {"content": items}


def _type_of(part: NewPart, usual: str) -> str:
    kind = metadata_value(part, ITEM_TYPE)
    return kind if isinstance(kind, str) else usual


def _thoughts(row: Fields) -> Iterator[NewPart]:
    """Read a reasoning item: its summaries, then its full text."""
    for key in ("summary", "content"):
        for piece in row.objects(key):
            part = NewPart(PartType.REASONING, text_content=piece.text("text"))
            part = with_key(part, _IN_FULL, True) if key == "content" else part
            yield with_remainder(part, NOTE, piece.values, _plain_thought(part))


def _plain_thought(part: NewPart) -> dict[str, Any]:
    return {"type": "reasoning_text" if metadata_value(part, _IN_FULL) else "summary_text", "text": part.text_content}


def _plain_thoughts(parts: Sequence[NewPart]) -> dict[str, Any]:
    given = [part for part in parts if part.text_content is not None or split_remainder(part.metadata, NOTE)[1]]
    pieces = [(part, with_kept(_plain_thought(part), part.metadata, NOTE)) for part in given]
    content = [piece for part, piece in pieces if metadata_value(part, _IN_FULL)]
    summary = [piece for part, piece in pieces if not metadata_value(part, _IN_FULL)]
    return {"type": REASONING, "summary": summary} | ({"content": content} if content else {})


def _id_of_call(row: Fields) -> str | None:
    return row.text("call_id") or row.text("id")


def _call(row: Fields, kind: str) -> NewPart:
    call_id, result, error = _id_of_call(row), row.values.get("result"), row.values.get("error")
    if kind == _IMAGE_CALL and isinstance(result, str):
        part = NewPart(PartType.FILE, file_mime="image/png", file_url=f"data:image/png;base64,{result}")
        return with_key(part, ITEM_TYPE, kind)
    if kind in WITH_ARGUMENTS:
        part = function_part(row)
    else:
        part = a_call(None, row.text("name") or kind.removesuffix(_CALLS), row.values.get(_input_key(kind)))
    # A call of one of the vendor's own tools includes the result.
    words = "\n".join(filter(None, (_words_in(row.values.get(key)) for key in ("output", "outputs", "results"))))
    if error:
        part = replace(part, tool_error=_words_in(error) or str(error), tool_status="error")
    elif words:
        part = replace(part, tool_output=words, tool_status="completed")
    part = replace(part, tool_call_id=call_id)
    return part if kind == CALL else with_key(part, ITEM_TYPE, kind)


def _input_key(kind: str) -> str:
    return _INPUTS.get(kind, "action")


def _plain_call(part: NewPart) -> dict[str, Any]:
    kind = _type_of(part, CALL)
    given = {"arguments": arguments_of(part)} if kind in WITH_ARGUMENTS else {_input_key(kind): part.tool_input}
    return {"type": kind, "call_id": part.tool_call_id, "name": part.tool_name} | given


def _result(row: Fields, kind: str) -> tuple[NewPart, ...]:
    """Read a result item: texts become results, other pieces stay FILE parts."""
    answer = partial(a_result, call_id=_id_of_call(row))
    output = row.values.get("output")
    if isinstance(output, list):
        parts = as_results((_piece(piece, Role.TOOL) for piece in row.objects("output")), answer)
        is_led = bool(parts) and parts[0].part_type is PartType.TOOL
        parts = parts if is_led else (answer(""), *parts)
        parts = (with_key(parts[0], _LISTED, is_led), *parts[1:])
    else:
        parts = (answer(_words_in(output)),)
    return parts if kind == RESULT else (with_key(parts[0], ITEM_TYPE, kind), *parts[1:])


def _plain_output(parts: Sequence[NewPart]) -> str | list[dict[str, Any]] | None:
    is_led = metadata_value(parts[0], _LISTED)
    if is_led is None and len(parts) == 1:
        return result_text(parts[0])
    # If the list did not begin with a text, `_result` added an empty result before it.
    return [item for part in (parts[1:] if is_led is False else parts) if (item := _piece_item(part, Role.TOOL))]


def _words_in(value: Any) -> str:
    """Return the text in the result of a tool."""
    words: list[str] = []
    # No recursion, as nesting may be deep.
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            words.append(each)
        elif isinstance(each, list):
            waiting += reversed(each)
        elif isinstance(each, Mapping):
            waiting += [each.get(key) for key in reversed(_WORD_KEYS)]
    return "\n".join(filter(None, words))


def _piece(item: Fields, role: Role) -> NewPart:
    kind = item.text("type") or ""
    if kind == "refusal" or kind.endswith("text"):
        part = NewPart(PartType.TEXT, text_content=item.required_text("refusal" if kind == "refusal" else "text"))
    elif kind == "input_image":
        part = NewPart(PartType.FILE, file_url=item.text("image_url"), file_mime="image/*")
    elif kind == "input_file":
        url = item.text("file_data") or item.text("file_url")
        part = NewPart(PartType.FILE, file_name=item.text("filename"), file_url=url)
    elif role is Role.TOOL and (words := _words_in(item.values)):
        part = NewPart(PartType.TEXT, text_content=words)
    else:
        part = block_of_words(item.values)
    return with_remainder(part, NOTE, item.values, _piece_item(part, role))


def _piece_item(part: NewPart, role: Role) -> dict[str, Any] | None:
    """Return the piece of a part, the exact inverse of `_piece`, if it has one."""
    item: dict[str, Any]
    if part.part_type is PartType.FILE and (part.file_mime or "").startswith("image/"):
        item = {"type": "input_image", "image_url": part.file_url}
    elif part.part_type is PartType.FILE:
        key = "file_data" if (part.file_url or "").startswith("data:") else "file_url"
        known = {"filename": part.file_name, key: part.file_url}
        item = {"type": "input_file"} | {key: value for key, value in known.items() if value is not None}
    else:
        if (text := shown_text(part)) is None:
            return None
        item = {"type": "output_text" if role is Role.ASSISTANT else "input_text", "text": text}
    return with_kept(item, part.metadata, NOTE)


def render_openai_responses(items: Iterable[Item]) -> Rendered:
    """Render an assembled context as items: results follow their calls."""
    repairs = Repairs()
    turns = paired(turns_of(items, repairs, thought_of=_encrypted_thought), IdRule(longest=64), repairs)
    return rendered(_turns_with_items(turns, repairs), repairs)


def _turns_with_items(turns: Sequence[Turn], repairs: Repairs) -> Iterator[tuple[Turn, dict[str, Any]]]:
    # The ids of calls of custom tools: their results, which follow them, need another type.
    custom: set[str] = set()
    for turn in move_trailing_reasoning(turns, repairs):
        if turn.author is not None:
            repairs.note(RepairKind.DROPPED_NAME, turn.item_ids)
        for message in _messages(turn, custom, repairs):
            yield turn, message


def _encrypted_thought(item: Item, part: NewPart) -> dict[str, Any] | None:
    """Return the item of encrypted reasoning for its first part; None for others."""
    if part is not item.parts[0]:
        return None
    kept = split_remainder(item.metadata, NOTE)[1].get("add", {})
    opaque = {key: kept.get(key) for key in ("id", "encrypted_content")}
    if not all(isinstance(each, str) and is_storable(each) for each in opaque.values()):
        return None
    summary = [part.text_content or "" for part in item.parts if not metadata_value(part, _IN_FULL)]
    pieces = [{"type": "summary_text", "text": text} for text in summary if text and is_storable(text)]
    return {"type": REASONING, "summary": pieces} | opaque


def _messages(turn: Turn, custom: set[str], repairs: Repairs) -> Iterator[dict[str, Any]]:
    if turn.role is Role.ASSISTANT:
        # Each text and each call is an item of its own.
        for block in _calls_last(turn.blocks):
            if isinstance(block, Call):
                yield _shown_call(block, turn, custom, repairs)
            elif isinstance(block, Thought):
                yield dict(block.block)
            elif isinstance(block, Text | Attachment):
                yield {"role": turn.role.value, "content": _words(block, turn, repairs)}
    elif turn.role is Role.TOOL:
        for block in turn.blocks:
            if isinstance(block, Result):
                kind = "custom_tool_call_output" if block.call_id in custom else RESULT
                yield {"type": kind, "call_id": block.call_id, "output": _content(block.content, turn, repairs)}
    else:
        yield {"role": turn.role.value, "content": _content(turn.blocks, turn, repairs)}


def _calls_last(blocks: Sequence[Block]) -> list[Block]:
    """Put calls after texts; reasoning stays right before the block it led to."""
    words: list[Block] = []
    calls: list[Block] = []
    thoughts: list[Block] = []
    for block in blocks:
        if isinstance(block, Thought):
            thoughts.append(block)
        else:
            (calls if isinstance(block, Call) else words).extend((*thoughts, block))
            thoughts = []
    return [*words, *calls]


def _content(blocks: Iterable[Block], turn: Turn, repairs: Repairs) -> str | list[dict[str, Any]]:
    def shown(block: Text | Attachment) -> dict[str, Any]:
        piece = _shown_attachment(block) if isinstance(block, Attachment) and turn.role is not Role.SYSTEM else None
        return piece or {"type": "input_text", "text": _words(block, turn, repairs)}

    return content_of(blocks, shown)


def _words(block: Text | Attachment, turn: Turn, repairs: Repairs) -> str:
    return block.text if isinstance(block, Text) else attachment_text(block, turn, repairs)


def _shown_attachment(block: Attachment) -> dict[str, Any] | None:
    url, data, link = block.part.file_url, block.data, block.link("https", "http")
    if block.is_image and (data or link):
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    if data and not data[0].startswith(("audio/", "video/")):
        return {"type": "input_file", "filename": block.name, "file_data": url}
    return {"type": "input_file", "file_url": link} if link else None


def _shown_call(call: Call, turn: Turn, custom: set[str], repairs: Repairs) -> dict[str, Any]:
    name, arguments = name_and_arguments(call, turn, repairs)
    if is_custom(call.part):
        custom.add(call.shown_id)
        return {"type": "custom_tool_call", "call_id": call.shown_id, "name": name, "input": arguments}
    return {"type": CALL, "call_id": call.shown_id, "name": name, "arguments": arguments}

"""Items of OpenAI's Responses API: the `input` that agents send, and the `output` that they get. Pure.

An item is a message here: what a model thought, each of its calls and each result is one of its own, and all of them
are shown to a model as the turns that they were. A call of a tool that the vendor runs, such as `web_search_call`, is a
call of that name. What an item says beyond our columns, such as an encrypted thought, comes back exactly; an item of a
kind that is not known here is kept whole and says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conversations.content.flattening import flattened
from conversations.content.json_values import noun_of
from conversations.content.lossless_values import is_storable
from conversations.formats.fields import as_message, choice, objects, read
from conversations.formats.openai_chat import NOTE as CHAT
from conversations.formats.openai_chat import arguments_of, function_part
from conversations.formats.remainder import remainder, restored, split_note, with_note
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role

NOTE = "openai_responses"
# On the first part of an item: its type, where that is another than its parts would be written as.
_KIND = "openai_responses_type"
# On the first piece of a result that is a list: a lone text is written as a plain string otherwise.
_LISTED = "openai_responses_listed"
# On a thought that was told itself, and not as a summary of it.
_IN_FULL = "openai_responses_in_full"
ROLES = {role.value: role for role in (Role.USER, Role.ASSISTANT, Role.SYSTEM)} | {"developer": Role.SYSTEM}
MESSAGE, REASONING, CALL, RESULT = "message", "reasoning", "function_call", "function_call_output"
_CALLS, _RESULTS = "_call", "_output"
_IMAGE_CALL = "image_generation_call"
# Under which key a call says what is wanted; most of the vendor's own tools have an action.
_INPUTS = {"custom_tool_call": "input", "apply_patch_call": "operation", "file_search_call": "queries",
           "code_interpreter_call": "code"}  # fmt: skip
WITH_ARGUMENTS = (CALL, "mcp_call")
# What tells a message of this API from one of another: the type of a piece of it.
PIECES = frozenset({"input_text", "output_text", "input_image", "input_file"})
# What the results of tools say, by key.
_SAID = ("title", "filename", "text", "content", "logs", "stdout", "stderr", "message")
_PNG = re.compile(r"data:image/png;base64,(.*)", re.DOTALL)


def is_item(row: Any) -> bool:
    """Whether this is an item that no other format has: one that is no message."""
    kind = row.get("type") if isinstance(row, Mapping) and "role" not in row else None
    return isinstance(kind, str) and (kind == REASONING or kind.endswith((_CALLS, _RESULTS)))


def from_openai_responses(row: Mapping[str, Any]) -> NewMessage:
    """The message of an item; ValueError names the field that is not right. Unknown keys are kept in the metadata."""
    as_message(row)
    kind = read(row, "type", str) or MESSAGE
    content: str | None = None
    parts: tuple[NewPart, ...] = ()
    role = Role.ASSISTANT
    if kind == MESSAGE:
        role = choice(row.get("role"), ROLES, field="role")
        said = row.get("content")
        if not isinstance(said, str | list):
            raise ValueError(f"content must be a text or a list, not {noun_of(said)}.")
        content, parts = (said, ()) if isinstance(said, str) else ("", _pieces(said, role, where="content"))
    elif kind == REASONING:
        parts = tuple(_thoughts(row)) or (NewPart(PartType.REASONING),)
    elif kind.endswith(_RESULTS):
        role, parts = Role.TOOL, _result(row, kind)
    elif kind.endswith(_CALLS):
        parts = (_call(row, kind),)
    message = NewMessage(role=role, content=None if parts else content or "", parts=parts)
    return replace(message, metadata=with_note({}, NOTE, remainder(row, _plain(message))))


def to_openai_responses(record: MessageRecord) -> dict[str, Any]:
    """The item of a message: of one that came as an item, the same item.

    Of any other what an item has place for. Raises ValueError for a message with several calls or results, or with a
    call beside other words, which takes several items.
    """
    return restored(_plain(record), split_note(record.metadata, NOTE)[1])


def encrypted_thought(metadata: Any, parts: Sequence[NewPart]) -> dict[str, Any] | None:
    """The item of a thought that came encrypted, as its model takes it back; None for any other message."""
    kept = split_note(metadata, NOTE)[1].get("add", {})
    told = {key: kept.get(key) for key in ("id", "encrypted_content")}
    if not all(isinstance(each, str) and is_storable(each) for each in told.values()):
        return None
    summary = [part.text_content or "" for part in parts if not _mark(part, _IN_FULL)]
    pieces = [{"type": "summary_text", "text": text} for text in summary if text and is_storable(text)]
    return {"type": REASONING, "summary": pieces} | told


def is_custom(call: NewPart) -> bool:
    """Whether a call came as one of a custom tool, whose input is a text and no JSON, by either API of OpenAI's."""
    of_chat = split_note(call.metadata, CHAT)[1].get("add", {})
    return _mark(call, _KIND) == "custom_tool_call" or of_chat.get("type") == "custom"


def _plain(message: NewMessage | MessageRecord) -> dict[str, Any]:
    """What the columns say of a message, by the format's names."""
    parts = message.parts
    calls = [part for part in parts if part.part_type is PartType.TOOL]
    if message.role is Role.TOOL and parts:
        if len({part.tool_call_id for part in calls}) > 1:
            raise ValueError("The message holds the results of several calls; an item holds one.")
        call_id = calls[0].tool_call_id if calls else None
        return {"type": _kind_of(parts[0], RESULT), "call_id": call_id, "output": _plain_output(parts)}
    if parts and all(part.part_type is PartType.REASONING for part in parts):
        return _plain_thoughts(parts)
    if parts and _mark(parts[0], _KIND) == _IMAGE_CALL:
        return _plain_image(parts[0])
    if calls:
        if len(parts) > 1:
            raise ValueError("The message holds a call beside other words; an item holds one of them.")
        return _plain_call(calls[0])
    row: dict[str, Any] = {"role": message.role.value}
    if not parts:
        return row | {"content": message.content}
    items = [item for part in parts if (item := _piece_item(part, message.role))]
    return {"type": MESSAGE} | row | {"content": items}


def _mark(part: NewPart, name: str) -> Any:
    return part.metadata.get(name) if isinstance(part.metadata, Mapping) else None


def _marked(part: NewPart, name: str, value: Any) -> NewPart:
    return replace(part, metadata={**(part.metadata or {}), name: value})


def _kind_of(part: NewPart, usual: str) -> str:
    kind = _mark(part, _KIND)
    return kind if isinstance(kind, str) else usual


def _thoughts(row: Mapping[str, Any]) -> Iterator[NewPart]:
    """What was told of a thought: summaries of it, then the thought itself."""
    for key in ("summary", "content"):
        for place, piece in enumerate(objects(read(row, key, list), where=key)):
            part = NewPart(PartType.REASONING, text_content=read(piece, "text", str, where=f"{key}[{place}]."))
            part = _marked(part, _IN_FULL, True) if key == "content" else part
            yield replace(part, metadata=with_note(part.metadata, NOTE, remainder(piece, _plain_thought(part))))


def _plain_thought(part: NewPart) -> dict[str, Any]:
    return {"type": "reasoning_text" if _mark(part, _IN_FULL) else "summary_text", "text": part.text_content}


def _plain_thoughts(parts: Sequence[NewPart]) -> dict[str, Any]:
    told = [part for part in parts if part.text_content is not None or split_note(part.metadata, NOTE)[1]]
    pieces = [(part, restored(_plain_thought(part), split_note(part.metadata, NOTE)[1])) for part in told]
    content = [piece for part, piece in pieces if _mark(part, _IN_FULL)]
    summary = [piece for part, piece in pieces if not _mark(part, _IN_FULL)]
    return {"type": REASONING, "summary": summary} | ({"content": content} if content else {})


def _call(row: Mapping[str, Any], kind: str) -> NewPart:
    call_id = read(row, "call_id", str) or read(row, "id", str)
    if kind == _IMAGE_CALL and isinstance(row.get("result"), str):
        url = f"data:image/png;base64,{row['result']}"
        return _marked(NewPart(PartType.FILE, file_mime="image/png", file_url=url), _KIND, kind)
    if kind in WITH_ARGUMENTS:
        part = function_part(row, where="")
    else:
        name = read(row, "name", str) or kind.removesuffix(_CALLS)
        part = NewPart(PartType.TOOL, tool_name=name, tool_input=row.get(_input_of(kind)), tool_status="pending")
    # The vendor's own tools say in their call what came of it.
    said = "\n".join(filter(None, (_said_in(row.get(key)) for key in ("output", "outputs", "results"))))
    error = row.get("error")
    if error:
        part = replace(part, tool_error=_said_in(error) or str(error), tool_status="error")
    elif said:
        part = replace(part, tool_output=said, tool_status="completed")
    part = replace(part, tool_call_id=call_id)
    return part if kind == CALL else _marked(part, _KIND, kind)


def _input_of(kind: str) -> str:
    return _INPUTS.get(kind, "action")


def _plain_call(part: NewPart) -> dict[str, Any]:
    kind = _kind_of(part, CALL)
    wanted = {"arguments": arguments_of(part)} if kind in WITH_ARGUMENTS else {_input_of(kind): part.tool_input}
    return {"type": kind, "call_id": part.tool_call_id, "name": part.tool_name} | wanted


def _plain_image(part: NewPart) -> dict[str, Any]:
    data = _PNG.fullmatch(part.file_url or "")
    return {"type": _IMAGE_CALL, "result": data[1] if data else None}


def _result(row: Mapping[str, Any], kind: str) -> tuple[NewPart, ...]:
    """What a tool gave back: its texts as results, anything else beside them."""
    call_id = read(row, "call_id", str) or read(row, "id", str)
    result = NewPart(PartType.TOOL, tool_call_id=call_id, tool_status="completed")
    output = row.get("output")
    if isinstance(output, list):
        parts = tuple(
            replace(result, tool_output=piece.text_content or "", metadata=piece.metadata)
            if piece.part_type is PartType.TEXT
            else piece
            for piece in _pieces(output, Role.TOOL, where="output")
        )
        is_led = bool(parts) and parts[0].part_type is PartType.TOOL
        parts = parts if is_led else (replace(result, tool_output=""), *parts)
        parts = (_marked(parts[0], _LISTED, is_led), *parts[1:])
    else:
        parts = (replace(result, tool_output=_said_in(output)),)
    return parts if kind == RESULT else (_marked(parts[0], _KIND, kind), *parts[1:])


def _plain_output(parts: Sequence[NewPart]) -> str | list[dict[str, Any]] | None:
    is_led = _mark(parts[0], _LISTED)
    if is_led is None and len(parts) == 1:
        part = parts[0]
        return part.tool_output if part.tool_error is None else part.tool_error
    # One that leads a list without a text only stands for the result.
    return [item for part in (parts[1:] if is_led is False else parts) if (item := _piece_item(part, Role.TOOL))]


def _said_in(value: Any) -> str:
    """The words of what a tool gave back."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_said_in, value)))
    if not isinstance(value, Mapping):
        return ""
    return "\n".join(filter(None, (_said_in(value.get(key)) for key in _SAID)))


def _pieces(values: list[Any], role: Role, *, where: str) -> tuple[NewPart, ...]:
    items = objects(values, where=where)
    return tuple(_piece(item, role, where=f"{where}[{place}].") for place, item in enumerate(items))


def _piece(item: dict[str, Any], role: Role, *, where: str) -> NewPart:
    part = NewPart(PartType.FILE)
    kind = read(item, "type", str, where=where) or ""
    if kind == "refusal" or kind.endswith("text"):
        key = "refusal" if kind == "refusal" else "text"
        if (text := read(item, key, str, where=where)) is None:
            raise ValueError(f"{where}{key} must be given.")
        part = NewPart(PartType.TEXT, text_content=text)
    elif kind == "input_image":
        part = NewPart(PartType.FILE, file_url=read(item, "image_url", str, where=where), file_mime="image/*")
    elif kind == "input_file":
        url = read(item, "file_data", str, where=where) or read(item, "file_url", str, where=where)
        part = NewPart(PartType.FILE, file_name=read(item, "filename", str, where=where), file_url=url)
    elif role is Role.TOOL and (said := _said_in(item)):
        part = NewPart(PartType.TEXT, text_content=said)
    return replace(part, metadata=with_note(None, NOTE, remainder(item, _piece_item(part, role) or {})))


def _piece_item(part: NewPart, role: Role) -> dict[str, Any] | None:
    """The piece of a part, the exact inverse of `_piece`; None for a part that says nothing here."""
    item: dict[str, Any]
    if part.part_type is PartType.FILE and (part.file_mime or "").startswith("image/"):
        item = {"type": "input_image", "image_url": part.file_url}
    elif part.part_type is PartType.FILE:
        key = "file_data" if (part.file_url or "").startswith("data:") else "file_url"
        known = {"filename": part.file_name, key: part.file_url}
        item = {"type": "input_file"} | {key: value for key, value in known.items() if value is not None}
    else:
        text = part.tool_output if part.part_type is PartType.TOOL else part.text_content
        if part.part_type is not PartType.TEXT and (part.part_type is not PartType.TOOL or text is None):
            text = flattened([part]) or None
        if text is None:
            return None
        item = {"type": "output_text" if role is Role.ASSISTANT else "input_text", "text": text}
    return restored(item, split_note(part.metadata, NOTE)[1])

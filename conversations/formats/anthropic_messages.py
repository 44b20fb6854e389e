"""Messages of Anthropic's Messages API: the `messages` that agents send, and the answers that they get. Pure.

A message with results of tools and nothing else is a tool's; one that brings other words, too, stays a user's. What a
block says beyond our columns, such as the signature of a thought, comes back exactly; a block of a kind that is not
known here is kept whole and says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conversations.content.flattening import flattened
from conversations.content.json_values import noun_of
from conversations.content.lossless_values import is_storable
from conversations.formats.fields import DATA_URL, as_message, choice, objects, read
from conversations.formats.remainder import remainder, restored, split_note, with_note
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role

NOTE = "anthropic"
# On the first part of a result whose content is a list: of how many parts, and what the whole block says beyond them.
_PIECES = "anthropic_pieces"
_RESULT = "anthropic_result"
# On the text of a document: it is written as one again.
_DOCUMENT = "anthropic_document"
ROLES = {role.value: role for role in (Role.USER, Role.ASSISTANT, Role.SYSTEM)}
_CALL, _ANSWER = "tool_use", "tool_result"
# A thought, and what must come back of it.
_SIGNED = {"thinking": ("type", "thinking", "signature"), "redacted_thinking": ("type", "data")}
_ATTACHED = ("image", "document")
# What tells a message of this API from one of another: the type of a block.
TYPES = frozenset({_CALL, _ANSWER, *_SIGNED, *_ATTACHED, "server_tool_use", "mcp_tool_use"})
# What the results of a vendor's own tools say, by key.
_SAID = ("title", "url", "text", "stdout", "stderr", "error_code")


def from_anthropic(row: Mapping[str, Any]) -> NewMessage:
    """The message of a row; ValueError names the field that is not right. Unknown keys are kept in the metadata."""
    as_message(row)
    role = choice(row.get("role"), ROLES, field="role")
    content = row.get("content")
    if not isinstance(content, str | list):
        raise ValueError(f"content must be a text or a list, not {noun_of(content)}.")
    blocks = objects(content, where="content") if isinstance(content, list) else []
    parts = [part for place, block in enumerate(blocks) for part in _parts(block, where=f"content[{place}].")]
    if role is Role.USER and blocks and all(_kind(block) == _ANSWER for block in blocks):
        role = Role.TOOL
    said = NewMessage(
        role=role, content=None if parts else content if isinstance(content, str) else "", parts=tuple(parts)
    )
    return replace(said, metadata=with_note({}, NOTE, remainder(row, _plain(said))))


def to_anthropic(record: MessageRecord) -> dict[str, Any]:
    """The row of a message: of one that came in this form, the same row; of any other, what this API has place for."""
    return restored(_plain(record), split_note(record.metadata, NOTE)[1])


def signed_thought(part: NewPart) -> dict[str, Any] | None:
    """The block of a thought that its model signed, which it takes back as it was; None for any other."""
    if part.part_type is not PartType.REASONING or not split_note(part.metadata, NOTE)[1]:
        return None
    block = _block(part)
    keys = _SIGNED.get(_kind(block), ())
    signed = {key: block.get(key) for key in keys}
    is_whole = bool(keys) and all(isinstance(each, str) and is_storable(each) for each in signed.values())
    return signed if is_whole else None


def _plain(message: NewMessage | MessageRecord) -> dict[str, Any]:
    """What the columns say of a message, by the format's names."""
    role = Role.USER if message.role is Role.TOOL else message.role
    return {"role": role.value, "content": list(_blocks(message.parts)) or message.content or ""}


def _kind(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _parts(block: dict[str, Any], *, where: str) -> list[NewPart]:
    kind = read(block, "type", str, where=where) or ""
    if kind.endswith(_ANSWER):
        return _result(block, where=where)
    part = NewPart(PartType.FILE)
    if kind == "text":
        if (text := read(block, "text", str, where=where)) is None:
            raise ValueError(f"{where}text must be given.")
        part = NewPart(PartType.TEXT, text_content=text)
    elif kind in _SIGNED:
        part = NewPart(PartType.REASONING, text_content=read(block, "thinking", str, where=where))
    elif kind.endswith(_CALL):
        part = NewPart(
            PartType.TOOL,
            tool_call_id=read(block, "id", str, where=where),
            tool_name=read(block, "name", str, where=where),
            tool_input=block.get("input"),
            tool_status="pending",
        )
    elif kind in _ATTACHED:
        part = _attachment(block, kind, where=where)
    return [replace(part, metadata=with_note(part.metadata, NOTE, remainder(block, _block(part))))]


def _attachment(block: Mapping[str, Any], kind: str, *, where: str) -> NewPart:
    source = read(block, "source", dict, where=where) or {}
    where = f"{where}source."
    media_type, data = read(source, "media_type", str, where=where), source.get("data")
    if source.get("type") == "base64" and isinstance(data, str):
        mime = media_type or ""
        return NewPart(PartType.FILE, file_mime=mime, file_url=f"data:{mime};base64,{data}", file_name=_title(block))
    if source.get("type") == "text" and isinstance(data, str):
        return NewPart(PartType.TEXT, text_content=data, metadata={_DOCUMENT: True})
    mime = "image/*" if kind == "image" else "application/pdf"
    return NewPart(
        PartType.FILE, file_mime=mime, file_url=read(source, "url", str, where=where), file_name=_title(block)
    )


def _title(block: Mapping[str, Any]) -> str | None:
    title = block.get("title")
    return title if isinstance(title, str) and title else None


def _result(block: dict[str, Any], *, where: str) -> list[NewPart]:
    """What a tool gave back: its texts as results, anything else beside them, behind a result that may be empty."""
    is_error = bool(read(block, "is_error", bool, where=where))
    blank = NewPart(
        PartType.TOOL,
        tool_call_id=read(block, "tool_use_id", str, where=where),
        tool_status="error" if is_error else "completed",
    )

    def answer(text: str) -> NewPart:
        return replace(blank, tool_error=text) if is_error else replace(blank, tool_output=text)

    content = block.get("content")
    if isinstance(content, list):
        pieces = objects(content, where=f"{where}content")
        parts = [_piece(piece, answer, where=f"{where}content[{place}].") for place, piece in enumerate(pieces)]
        is_led = bool(parts) and parts[0].part_type is PartType.TOOL
        parts = parts if is_led else [answer(""), *parts]
        count = len(parts) if is_led else -len(parts)
        parts[0] = replace(parts[0], metadata={**(parts[0].metadata or {}), _PIECES: count})
    else:
        parts = [answer(content if isinstance(content, str) else _said_in(content))]
    [plain] = _blocks(parts)
    return [replace(parts[0], metadata=with_note(parts[0].metadata, _RESULT, remainder(block, plain))), *parts[1:]]


def _piece(piece: dict[str, Any], answer: Callable[[str], NewPart], *, where: str) -> NewPart:
    """One piece of what a tool gave back: an attachment, or what it says."""
    kind = _kind(piece)
    if kind in _ATTACHED:
        [part] = _parts(piece, where=where)
        return part
    part = answer(read(piece, "text", str, where=where) or "" if kind == "text" else _said_in(piece))
    return replace(part, metadata=with_note(None, NOTE, remainder(piece, _block(part))))


def _said_in(value: Any) -> str:
    """The words of what a vendor's own tool gave back."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_said_in, value)))
    if not isinstance(value, Mapping):
        return ""
    said = [value[key] for key in _SAID if isinstance(value.get(key), str) and value[key]]
    return "\n".join(filter(None, [*said, _said_in(value.get("content"))]))


def _blocks(parts: Sequence[NewPart]) -> Iterator[dict[str, Any]]:
    """The blocks of these parts, the exact inverse of `_parts`."""
    place = 0
    while place < len(parts):
        part = parts[place]
        if _is_answer(part):
            count = _pieces_of(part)
            yield _answer(parts[place : place + max(1, abs(count))], count)
            place += max(1, abs(count))
        else:
            if block := _block(part):
                yield block
            place += 1


def _is_answer(part: NewPart) -> bool:
    return part.part_type is PartType.TOOL and (part.tool_output is not None or part.tool_error is not None)


def _pieces_of(part: NewPart) -> int:
    """Of how many parts the result is that begins here; below zero, the first only stands for it; 0: a plain text."""
    count = part.metadata.get(_PIECES) if isinstance(part.metadata, Mapping) else None
    return count if type(count) is int else 0


def _answer(parts: Sequence[NewPart], count: int) -> dict[str, Any]:
    first = parts[0]
    is_error = first.tool_error is not None
    pieces = parts if count > 0 else parts[1:]
    content = [_block(piece) for piece in pieces] if count else (first.tool_error if is_error else first.tool_output)
    known: dict[str, Any] = {"type": _ANSWER, "tool_use_id": first.tool_call_id, "content": content}
    return restored(known | ({"is_error": True} if is_error else {}), split_note(first.metadata, _RESULT)[1])


def _block(part: NewPart) -> dict[str, Any]:
    """The block of one part; of a result, the text in it. Empty for what says nothing here."""
    block: dict[str, Any]
    data = DATA_URL.fullmatch(part.file_url or "")
    kind = "image" if (part.file_mime or "").startswith("image/") else "document"
    if _is_answer(part):
        block = {"type": "text", "text": part.tool_output if part.tool_error is None else part.tool_error}
    elif part.part_type is PartType.TOOL:
        block = {"type": _CALL, "id": part.tool_call_id, "name": part.tool_name, "input": part.tool_input}
    elif part.part_type is PartType.REASONING:
        block = {"type": "thinking", "thinking": part.text_content}
    elif part.part_type is PartType.FILE:
        source = {"type": "base64", "media_type": data[1], "data": data[2]} if data else {
            "type": "url", "url": part.file_url
        }  # fmt: skip
        block = {"type": kind, "source": source} | ({"title": part.file_name} if part.file_name else {})
    elif isinstance(part.metadata, Mapping) and part.metadata.get(_DOCUMENT) is True:
        source = {"type": "text", "media_type": "text/plain", "data": part.text_content}
        block = {"type": "document", "source": source}
    else:
        text = part.text_content if part.part_type is PartType.TEXT else flattened([part])
        block = {"type": "text", "text": text} if text else {}
    return restored(block, split_note(part.metadata, NOTE)[1])

"""An assembled context as the input of OpenAI's Responses API. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from conversations.formats import arguments_of
from conversations.formats.openai_responses import encrypted_thought, is_custom
from conversations.types import NewPart, Role
from retrieval.assembly.types import AssembledItem, RepairKind
from retrieval.formats.attachments import data_of, is_image, link_of, name_of, stand_in
from retrieval.formats.pairing import IdRule, paired, tool_name
from retrieval.formats.rendered import Rendered, Repairs, content_of
from retrieval.formats.turns import Attachment, Block, Call, Result, Text, Thought, Turn, led_somewhere, turns_of

CALL_IDS = IdRule(longest=64)
TOOL_NAMES = IdRule(longest=64)


def as_openai_responses(items: Iterable[AssembledItem]) -> Rendered:
    """The items as input items: each call of a tool with its results right behind it, nothing without words."""
    repairs = Repairs()
    messages: list[dict[str, Any]] = []
    sources: list[tuple[str, ...]] = []
    # Results are of the kind of their calls, which stand before them.
    custom: set[str] = set()
    turns = paired(turns_of(items, repairs, thought_of=_thought_of), CALL_IDS, repairs)
    for turn in led_somewhere(turns, repairs):
        if turn.author is not None:
            repairs.note(RepairKind.DROPPED_NAME, turn.item_ids)
        for message in _messages(turn, custom, repairs):
            messages.append(message)
            sources.append(turn.item_ids)
    return Rendered(messages=tuple(messages), sources=tuple(sources), repairs=repairs.as_records())


def _thought_of(item: AssembledItem, part: NewPart) -> Mapping[str, Any] | None:
    """A thought is one item, however many summaries there are of it."""
    return encrypted_thought(item.metadata, item.parts) if part is item.parts[0] else None


def _messages(turn: Turn, custom: set[str], repairs: Repairs) -> Iterator[dict[str, Any]]:
    if turn.role is Role.ASSISTANT:
        # What it says and what it calls are items of their own.
        for block in _calls_last(turn.blocks):
            if isinstance(block, Call):
                yield _call(block, turn, custom, repairs)
            elif isinstance(block, Thought):
                yield dict(block.block)
            elif isinstance(block, Text | Attachment):
                yield {"role": turn.role.value, "content": _words(block, turn, repairs)}
    elif turn.role is Role.TOOL:
        for block in turn.blocks:
            if isinstance(block, Result):
                kind = "custom_tool_call_output" if block.call_id in custom else "function_call_output"
                yield {"type": kind, "call_id": block.call_id, "output": _content(block.content, turn, repairs)}
    else:
        yield {"role": turn.role.value, "content": _content(turn.blocks, turn, repairs)}


def _calls_last(blocks: Sequence[Block]) -> list[Block]:
    """All words in their order, then the calls: no word stands between a call and its result.

    A thought stays right before what it led to.
    """
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


def _content(blocks: Sequence[Block], turn: Turn, repairs: Repairs) -> str | list[dict[str, Any]]:
    return content_of([_piece(block, turn, repairs) for block in blocks if isinstance(block, Text | Attachment)])


def _piece(block: Text | Attachment, turn: Turn, repairs: Repairs) -> dict[str, Any]:
    shown = _attachment(block) if isinstance(block, Attachment) and turn.role is not Role.SYSTEM else None
    return shown or {"type": "input_text", "text": _words(block, turn, repairs)}


def _words(block: Text | Attachment, turn: Turn, repairs: Repairs) -> str:
    if isinstance(block, Text):
        return block.text
    repairs.note(RepairKind.ATTACHMENT_AS_TEXT, turn.item_ids)
    return stand_in(block.part)


def _attachment(block: Attachment) -> dict[str, Any] | None:
    part, data = block.part, data_of(block.part)
    if is_image(part) and (data or link_of(part, "https", "http")):
        return {"type": "input_image", "image_url": part.file_url, "detail": "auto"}
    if data and not data[0].startswith(("audio/", "video/")):
        return {"type": "input_file", "filename": name_of(part), "file_data": part.file_url}
    if url := link_of(part, "https", "http"):
        return {"type": "input_file", "file_url": url}
    return None


def _call(call: Call, turn: Turn, custom: set[str], repairs: Repairs) -> dict[str, Any]:
    name = tool_name(call, TOOL_NAMES, turn.item_ids, repairs)
    arguments = repairs.sendable(arguments_of(call.part), turn.item_ids[0])
    if is_custom(call.part):
        custom.add(call.shown_id)
        return {"type": "custom_tool_call", "call_id": call.shown_id, "name": name, "input": arguments}
    return {"type": "function_call", "call_id": call.shown_id, "name": name, "arguments": arguments}

"""Convert items to turns of typed blocks, which are then rendered. Pure.

Thoughts (reasoning) are rendered only for APIs that accept them, and only before the blocks that they led to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from conversations.content.flattening import flattened
from conversations.content.lossless_values import storable
from conversations.formats.foreign_rows import is_result
from conversations.formats.rendered import Item, Rendered, RepairKind, Repairs
from conversations.types import NewPart, PartType, Role

_DATA = re.compile(r"data:([^;,]+)((?:;[^;,]+)*);base64,([A-Za-z0-9+/]+={0,2})")


class Text(NamedTuple):
    text: str


class Attachment(NamedTuple):
    """An image, a recording, a document."""

    part: NewPart

    @property
    def data(self) -> tuple[str, str] | None:
        """The media type and the base64 of a data URL; None for other attachments."""
        found = _DATA.fullmatch(self.part.file_url or "")
        return (found[1].lower(), found[3]) if found else None

    def link(self, *schemes: str) -> str | None:
        """Return the attachment's URL if it has one of these schemes, else None."""
        url = self.part.file_url or ""
        is_link = any(url.startswith(f"{scheme}://") for scheme in schemes)
        return url if is_link and url.isprintable() and url == storable(url) else None

    @property
    def media_type(self) -> str:
        data = self.data
        return data[0] if data else (self.part.file_mime or "").lower()

    @property
    def is_image(self) -> bool:
        return self.media_type.startswith("image/")

    @property
    def name(self) -> str:
        """The file name, or "file", for an API that requires one."""
        name = self.part.file_name
        return name if name and name == storable(name) else "file"

    @property
    def stand_in(self) -> str:
        """The text that replaces an attachment that cannot be shown."""
        kind = self.media_type.partition("/")[0]
        words = [kind if kind in ("image", "audio", "video") else "file", storable(self.part.file_name or "")]
        caption = storable(self.part.text_content or "").strip()
        return f"[{' '.join(filter(None, words))}{f': {caption}' if caption else ''}]"


class Call(NamedTuple):
    part: NewPart
    # The id that the call is rendered with: its own may be missing, invalid, or used by another call.
    shown_id: str = ""


class Result(NamedTuple):
    call_id: str | None
    content: tuple[Text | Attachment, ...]
    is_error: bool = False


class Thought(NamedTuple):
    """Signed reasoning of a model, as a block that the model's API accepts."""

    block: Mapping[str, Any]


Block = Text | Attachment | Call | Result | Thought
# Returns the block for a reasoning part of an item; None if it is not signed, or if another part's block includes it.
ThoughtOf = Callable[[Item, NewPart], Mapping[str, Any] | None]


class Turn(NamedTuple):
    """Consecutive blocks of one role; results of tools are a turn of the role tool."""

    role: Role
    blocks: tuple[Block, ...]
    item_ids: tuple[str, ...]
    author: str | None = None

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Call))


def turns_of(items: Iterable[Item], repairs: Repairs, *, thought_of: ThoughtOf | None = None) -> list[Turn]:
    """Convert items to turns; an item with nothing to show gets none.

    Without `thought_of`, reasoning is left out.
    """
    turns: list[Turn] = []
    for item in items:
        found = _split(item, _blocks(item, repairs, thought_of))
        if not found:
            repairs.note(RepairKind.DROPPED_EMPTY, [item.id])
        turns += found
    return turns


def _split(item: Item, blocks: Sequence[Block]) -> list[Turn]:
    """Split an item into turns, in order: results are turns of the role tool."""
    if item.role is Role.TOOL:
        blocks = _as_results(blocks)
    by_role = groupby(blocks, lambda block: Role.TOOL if isinstance(block, Result) else item.role)
    return [Turn(role, tuple(group), (item.id,), author=item.author) for role, group in by_role]


def _blocks(item: Item, repairs: Repairs, thought_of: ThoughtOf | None) -> list[Block]:
    """Return the blocks of an item, without empty texts and texts that models ignore."""
    if not item.parts:
        blocks: list[Block] = [Text(item.text)]
    else:
        text_of_parts = flattened(item.parts)
        # If the content is not the text of the parts, both are shown.
        is_own = bool(item.text.strip()) and item.text != text_of_parts and item.text.strip() not in text_of_parts
        blocks = [Text(item.text)] if is_own else []
        for part in item.parts:
            is_text = part.part_type is PartType.TEXT
            if not (is_text and (part.is_ignored or (is_own and (part.text_content or "") in item.text))):
                blocks += _blocks_of_part(part, item, thought_of)
    return [_sendable(block, item.id, repairs) for block in blocks if not isinstance(block, Text) or block.text]


def _blocks_of_part(part: NewPart, item: Item, thought_of: ThoughtOf | None) -> Iterator[Block]:
    role = item.role
    match part.part_type:
        case PartType.TOOL:
            has_result = is_result(part)
            is_call = part.tool_input is not None or (bool(part.tool_name) and not has_result)
            if is_call and role is Role.ASSISTANT:
                yield Call(part)
            elif is_call and role is not Role.TOOL:
                # Only an assistant can call; a call in another message is text.
                yield Text(flattened([replace(part, tool_output=None, tool_error=None)]))
            if has_result or role is Role.TOOL:
                texts = [text for text in (part.tool_output, part.tool_error) if text]
                yield Result(part.tool_call_id, tuple(map(Text, texts)), is_error=part.tool_error is not None)
        case PartType.FILE if part.file_url or not part.text_content:
            yield Attachment(part)
        case PartType.REASONING:
            if role is Role.ASSISTANT and thought_of is not None and (block := thought_of(item, part)) is not None:
                yield Thought(block)
        case _:
            # Bookkeeping parts have an empty text.
            yield Text(flattened([part]))


def _as_results(blocks: Sequence[Block]) -> list[Block]:
    """Merge the blocks of a tool's message into its results."""
    results: list[Block] = []
    beside: tuple[Text | Attachment, ...] = ()
    for block in blocks:
        last = results[-1] if results else None
        if isinstance(block, Result):
            if isinstance(last, Result) and last.call_id == block.call_id is not None:
                is_error = last.is_error or block.is_error
                results[-1] = Result(last.call_id, last.content + block.content, is_error)
            else:
                results.append(Result(block.call_id, beside + block.content, block.is_error))
                beside = ()
        elif isinstance(block, Text | Attachment):
            if isinstance(last, Result):
                results[-1] = last._replace(content=(*last.content, block))
            else:
                beside = (*beside, block)
    return results or ([Result(None, beside)] if beside else [])


def _sendable(block: Block, item_id: str, repairs: Repairs) -> Block:
    match block:
        case Text(text):
            return Text(repairs.sendable(text, item_id))
        case Result(content=content):
            sendable = tuple(
                Text(repairs.sendable(each.text, item_id)) if isinstance(each, Text) else each for each in content
            )
            return block._replace(content=sendable)
        case _:
            return block


def move_trailing_reasoning(turns: Iterable[Turn], repairs: Repairs) -> Iterator[Turn]:
    """Move reasoning at the end of a turn to the assistant's next turn, or drop it.

    No API accepts reasoning at the end of a turn.
    """
    thoughts: tuple[Block, ...] = ()
    thinkers: tuple[str, ...] = ()
    for turn in turns:
        if turn.role is Role.ASSISTANT:
            blocks = (*thoughts, *turn.blocks)
            end = max((place for place, block in enumerate(blocks, start=1) if _is_shown(block)), default=0)
            thoughts = tuple(block for block in blocks[end:] if isinstance(block, Thought))
            shown = (*blocks[:end], *(block for block in blocks[end:] if block not in thoughts))
            turn = turn._replace(blocks=shown, item_ids=tuple(dict.fromkeys((*thinkers, *turn.item_ids))))
            thinkers = turn.item_ids if thoughts else ()
        elif thoughts:
            repairs.note(RepairKind.DROPPED_EMPTY, thinkers)
            thoughts, thinkers = (), ()
        if turn.blocks:
            yield turn
    if thoughts:
        repairs.note(RepairKind.DROPPED_EMPTY, thinkers)


def _is_shown(block: Block) -> bool:
    return not isinstance(block, Thought) and not (isinstance(block, Text) and not block.text.strip())


def attachment_text(block: Attachment, turn: Turn, repairs: Repairs) -> str:
    """Return the text that replaces an attachment, and note the repair."""
    repairs.note(RepairKind.ATTACHMENT_AS_TEXT, turn.item_ids)
    return block.stand_in


def content_of(
    blocks: Iterable[Block], piece_of: Callable[[Text | Attachment], dict[str, Any]]
) -> str | list[dict[str, Any]]:
    """Build `content` for OpenAI's APIs: a string for one text, else a list of parts."""
    pieces = [piece_of(block) for block in blocks if isinstance(block, Text | Attachment)]
    if len(pieces) <= 1 and all("text" in piece for piece in pieces):
        return str(pieces[0]["text"]) if pieces else ""
    return pieces


def rendered(messages: Iterable[tuple[Turn, Mapping[str, Any]]], repairs: Repairs) -> Rendered:
    """Build the result from messages with their turns, and the repairs."""
    found = tuple(messages)
    return Rendered(
        messages=tuple(message for _, message in found),
        sources=tuple(turn.item_ids for turn, _ in found),
        repairs=repairs.as_records(),
    )

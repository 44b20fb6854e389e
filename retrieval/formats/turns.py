"""Turn items into turns of typed blocks, from which all formats are made. Pure.

Thoughts go only to APIs that take them back, and only with what they led to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from conversations.content.flattening import flattened
from conversations.types import ContextItemType, NewPart, PartType, Role
from retrieval.assembly.types import AssembledItem, RepairKind
from retrieval.formats.rendered import Repairs


class Text(NamedTuple):
    text: str


class Attachment(NamedTuple):
    """An image, a recording, a document."""

    part: NewPart


class Call(NamedTuple):
    part: NewPart
    # The id that it is shown with; its own may be missing, or taken.
    shown_id: str = ""


class Result(NamedTuple):
    call_id: str | None
    content: tuple[Text | Attachment, ...]
    is_error: bool = False


class Thought(NamedTuple):
    """What a model thought and signed, as the block that its own API takes back; to any other it says nothing."""

    block: Mapping[str, Any]


Block = Text | Attachment | Call | Result | Thought
# The block of a part of an item; None for what is not taken back, as it is not signed, or was said with it already.
ThoughtOf = Callable[[AssembledItem, NewPart], Mapping[str, Any] | None]


class Turn(NamedTuple):
    """What one role says at once; the results of tools are a turn of their own, of the role tool."""

    role: Role
    blocks: tuple[Block, ...]
    item_ids: tuple[str, ...]
    author: str | None = None

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Call))


def no_thought(item: AssembledItem, part: NewPart) -> None:
    """For an API that takes no thoughts back."""


def turns_of(items: Iterable[AssembledItem], repairs: Repairs, *, thought_of: ThoughtOf = no_thought) -> list[Turn]:
    """The turns of these items; what says nothing to a model, such as a message that was only thought, has none.

    `thought_of` says what an API takes back of what its models thought.
    """
    turns: list[Turn] = []
    for item in items:
        found = _split(item, _blocks(item, repairs, thought_of))
        if not found:
            repairs.note(RepairKind.DROPPED_EMPTY, [item.id])
        turns += found
    return turns


def _split(item: AssembledItem, blocks: Sequence[Block]) -> list[Turn]:
    """Results apart from the rest, in order: what is said behind a result is another turn."""
    if item.role is Role.TOOL:
        blocks = _as_results(blocks)
    turns: list[Turn] = []
    for block in blocks:
        role = Role.TOOL if isinstance(block, Result) else item.role
        if turns and turns[-1].role is role:
            turns[-1] = turns[-1]._replace(blocks=(*turns[-1].blocks, block))
        else:
            turns.append(Turn(role, (block,), (item.id,), author=item.author))
    return turns


def _blocks(item: AssembledItem, repairs: Repairs, thought_of: ThoughtOf) -> list[Block]:
    """Everything that an item says; empty texts say nothing."""
    if item.kind is ContextItemType.SUMMARY or not item.parts:
        blocks: list[Block] = [Text(item.text)]
    else:
        told = flattened(item.parts)
        # A caller whose content is not the text of the parts has said both.
        is_own = bool(item.text.strip()) and item.text != told and item.text.strip() not in told
        blocks = [Text(item.text)] if is_own else []
        for part in item.parts:
            if not (is_own and part.part_type is PartType.TEXT and (part.text_content or "") in item.text):
                blocks += _blocks_of_part(part, item, thought_of)
    return [_sendable(block, item.id, repairs) for block in blocks if not isinstance(block, Text) or block.text]


def _blocks_of_part(part: NewPart, item: AssembledItem, thought_of: ThoughtOf) -> Iterator[Block]:
    role = item.role
    match part.part_type:
        case PartType.TOOL:
            has_result = part.tool_output is not None or part.tool_error is not None
            is_call = part.tool_input is not None or (bool(part.tool_name) and not has_result)
            if is_call and role is Role.ASSISTANT:
                yield Call(part)
            elif is_call and role is not Role.TOOL:
                # Nobody else can call: what they say of a call is words.
                yield Text(flattened([replace(part, tool_output=None, tool_error=None)]))
            if has_result or role is Role.TOOL:
                texts = [text for text in (part.tool_output, part.tool_error) if text]
                yield Result(part.tool_call_id, tuple(map(Text, texts)), is_error=part.tool_error is not None)
        case PartType.FILE:
            yield Attachment(part)
        case PartType.REASONING:
            if role is Role.ASSISTANT and (block := thought_of(item, part)) is not None:
                yield Thought(block)
        case _:
            # Of bookkeeping, nothing.
            yield Text(flattened([part]))


def _as_results(blocks: Sequence[Block]) -> list[Block]:
    """A tool's message as results: what stands beside a result belongs to it; the pieces of one are one."""
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


def led_somewhere(turns: Iterable[Turn], repairs: Repairs) -> Iterator[Turn]:
    """Move thoughts to the words or calls that follow them.

    No API takes a thought at the end of a turn.
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

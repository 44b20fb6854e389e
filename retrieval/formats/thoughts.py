"""What models thought, for the APIs that take it back: only with what it led to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conversations.types import Role
from retrieval.assembly.types import RepairKind
from retrieval.formats.repairs import Repairs
from retrieval.formats.turns import Block, Text, Thought, Turn


def led_somewhere(turns: Iterable[Turn], repairs: Repairs) -> Iterator[Turn]:
    """The turns, thoughts with the words or calls which they led to: no API takes one at the end of a turn."""
    thoughts: tuple[Block, ...] = ()
    thinkers: tuple[str, ...] = ()
    for turn in turns:
        if turn.role is Role.ASSISTANT:
            blocks = (*thoughts, *turn.blocks)
            end = max((place for place, block in enumerate(blocks, start=1) if _is_said(block)), default=0)
            thoughts = tuple(block for block in blocks[end:] if isinstance(block, Thought))
            said = (*blocks[:end], *(block for block in blocks[end:] if block not in thoughts))
            turn = turn._replace(blocks=said, item_ids=tuple(dict.fromkeys((*thinkers, *turn.item_ids))))
            thinkers = turn.item_ids if thoughts else ()
        elif thoughts:
            repairs.note(RepairKind.DROPPED_EMPTY, thinkers)
            thoughts, thinkers = (), ()
        if turn.blocks:
            yield turn
    if thoughts:
        repairs.note(RepairKind.DROPPED_EMPTY, thinkers)


def _is_said(block: Block) -> bool:
    return not isinstance(block, Thought) and not (isinstance(block, Text) and not block.text.strip())

"""What compaction saves, and that it loses nothing: goals 10 and 11, on every conversation of ../shared/data.

Each conversation is imported and compacted twice: as an operator would have it, and with settings that force summaries
of summaries of summaries. Then it is assembled within several budgets, every token counted again, and opened from its
roots by cursors until the last byte is out, which is compared with what was imported.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from compaction.engine import CompactionEngine
from conversations.content.flattening import flattened
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS, TokenEstimator
from conversations.formats.neutral import from_neutral
from conversations.models import ContextItem
from conversations.types import ContextItemType, NewMessage
from retrieval.assembler import ContextAssembler
from retrieval.assembly.types import AssembledContext
from tests.conversations.real_data import conversation_files, rows_of
from tests.evaluation.figures import Figure
from tests.flows.promises import given_values
from tests.flows.walk import everything_said, imported
from tests.tables import in_columns

# Shorter ones are not judged by what is saved: their fresh tail is most of them.
LONG_ENOUGH = 60
FRESH_TAIL = 8
BUDGETS = (1_000, 2_000, 4_000, 8_000, 32_000, 128_000)

# What is said in a message: its text, and the values of its parts by column.
Said = tuple[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Saving:
    """What came of one conversation."""

    name: str
    messages: int
    raw_tokens: int
    assembled_tokens: int
    depth: int
    deepest: int
    is_tail_intact: bool
    # Budgets that an answer was above by a real recount, without having said so.
    budgets_broken: tuple[int, ...]
    lost: int

    @property
    def reduction(self) -> float:
        return 1 - self.assembled_tokens / self.raw_tokens


def figures() -> Iterator[Figure]:
    """Goals 10 and 11; nothing if there are no conversations."""
    found = savings()
    judged = [saving for saving in found if saving.messages >= LONG_ENOUGH]
    if not judged:
        return
    kept = f"tokens saved, of {len(judged)} conversations of {LONG_ENOUGH} messages or more"
    yield Figure(10, f"{kept}: median", "lcm", statistics.median(saving.reduction for saving in judged), 0.7)
    yield Figure(10, f"{kept}: least", "lcm", min(saving.reduction for saving in judged), 0.3)
    yield Figure(10, "fresh tails intact, of all", "lcm", _share(saving.is_tail_intact for saving in found), 1.0)
    within = _share(not saving.budgets_broken for saving in found)
    yield Figure(10, "never above a budget by recount, of all", "lcm", within, 1.0)
    deep = [saving for saving in judged if saving.deepest >= 3]
    yield Figure(11, f"lossless at any depth, 3 and more in {len(deep)}", "lcm", _share(not s.lost for s in found), 1.0)


def table() -> str:
    """Every conversation with what came of it."""
    rows = [
        {
            "conversation": saving.name,
            "messages": str(saving.messages),
            "raw tokens": f"{saving.raw_tokens:,}",
            "assembled": f"{saving.assembled_tokens:,}",
            "saved": f"{saving.reduction:.0%}",
            "depth": str(saving.depth),
            "forced": str(saving.deepest),
            "tail": "whole" if saving.is_tail_intact else "TORN",
            "budgets": "kept" if not saving.budgets_broken else f"BROKEN: {saving.budgets_broken}",
            "lost": "nothing" if not saving.lost else f"{saving.lost} MESSAGES",
        }
        for saving in savings()
    ]
    return in_columns([list(rows[0]), *(list(row.values()) for row in rows)], to_the_right={1, 2, 3, 4, 5, 6})


def _share(answers: Iterator[bool]) -> float:
    return statistics.fmean(answers)


@cache
def savings() -> list[Saving]:
    return [_saving(file) for file in conversation_files()]


def _saving(file: Path) -> Saving:
    name = file.name.removesuffix(".jsonl.gz")
    rows = list(rows_of(file))
    plain = imported(rows, session_id=name)
    deep = imported(rows, session_id=f"{name}, deep", **_forcing_depth(plain.counters.active_tokens))
    for each in (plain, deep):
        CompactionEngine.from_settings().compact(conversation_id=each.conversation_id)
    assembler = ContextAssembler.from_settings()
    contexts = [assembler.assemble(conversation_id=plain.conversation_id, budget=budget) for budget in BUDGETS]
    expected = [_said(message) for message in map(from_neutral, rows)]
    return Saving(
        name=name,
        messages=len(rows),
        raw_tokens=plain.counters.active_tokens,
        assembled_tokens=contexts[-1].total_tokens,
        depth=_depth(plain.conversation_id),
        deepest=_depth(deep.conversation_id),
        is_tail_intact=all(_has_tail(context, expected) for context in contexts),
        budgets_broken=tuple(context.budget for context in contexts if _is_above(context)),
        lost=sum(_lost(expected, each.conversation_id) for each in (plain, deep)),
    )


def _forcing_depth(raw_tokens: int) -> dict[str, int]:
    """Settings under which eight leaves, and so depth 3, come of any history that is not too short for them."""
    return {
        "fresh_tail_count": 1,
        "leaf_chunk_tokens": max(400, raw_tokens // 20),
        "leaf_target_tokens": 150,
        "condensed_target_tokens": 120,
        "condense_fan_in": 2,
    }


def _depth(conversation_id: int) -> int:
    """The depth of the deepest summary in the context; -1 if there is none."""
    shown = ContextItem.objects.filter(conversation_id=conversation_id, summary__isnull=False)
    return max(shown.values_list("summary__depth", flat=True), default=-1)


def _has_tail(context: AssembledContext, expected: Sequence[Said]) -> bool:
    """Whether the newest messages stand at the end of the context word for word."""
    tail = [(item.text, given_values(item.parts)) for item in context.items if item.kind is ContextItemType.MESSAGE]
    return tail[-FRESH_TAIL:] == list(expected[-FRESH_TAIL:])


def _is_above(context: AssembledContext) -> bool:
    count = TokenEstimator.from_settings().count
    tokens = sum(count(item.text) + MESSAGE_OVERHEAD_TOKENS for item in context.items)
    return tokens > context.budget and not context.over_budget


def _lost(expected: Sequence[Said], conversation_id: int) -> int:
    """How many messages do not come back, from the context and by expansion below it, or come back twice."""
    back = Counter((seq, text, repr(given_values(parts))) for seq, text, parts in everything_said(conversation_id))
    given = Counter((seq, text, repr(values)) for seq, (text, values) in enumerate(expected, 1))
    return max((given - back).total(), (back - given).total())


def _said(message: NewMessage) -> Said:
    return (flattened(message.parts) if message.content is None else message.content, given_values(message.parts))

"""Forecast what a run would do. Pure.

A forecast follows the same steps as a run, but assumes that each summary has exactly its target length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.llm.configuration import cost_of
from compaction.planning import planner
from compaction.planning.planner import Slot
from compaction.planning.steps import Step, leaf_and_condensed_steps
from compaction.policy import SHELL_TOKENS, CompactionPolicy
from compaction.summarizing.prompts import MOST_SOURCE_TOKENS
from compaction.types import PlanStep, SeqRange

# The expected tokens of a prompt without its sources: the instructions and the previous summary.
PROMPT_TOKENS = 1_200


@dataclass(frozen=True)
class PlannedItem:
    """A context item that a step replaces, as it was when the plan was made."""

    ordinal: int
    id: str
    tokens: int


@dataclass(frozen=True)
class PlannedStep:
    """A step with the ordinals of all its slots, and its items in the context.

    `items` has only slots that were in the context before the first step, not the summaries of earlier steps.
    """

    step: PlanStep
    ordinals: tuple[int, ...]
    items: tuple[PlannedItem, ...]


class Forecast:
    """The expected steps of a run, in order, and the size of the context after them."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.tokens = planner.sum_tokens(slots)
        self.messages = sum(slot.is_raw for slot in slots)
        self.items = len(slots)
        self.steps: list[PlannedStep] = []
        self._ranges_of: dict[Slot, tuple[SeqRange, ...]] = {}
        self._number_of: dict[Slot, int] = {}

    def make(self, step: Step) -> Slot:
        """Add the step; return the slot of the summary that it is expected to make."""
        number, chunk = len(self.steps) + 1, step.chunk
        expected = step.target_tokens + SHELL_TOKENS
        ranges = self._ranges(chunk)
        planned = PlanStep(
            number=number,
            kind=step.kind,
            depth=step.depth,
            first_seq=ranges[0].first_seq,
            last_seq=ranges[-1].last_seq,
            ranges=ranges,
            item_count=len(chunk),
            from_steps=tuple(self._number_of[slot] for slot in chunk if slot in self._number_of),
            source_tokens=planner.sum_tokens(chunk),
            target_tokens=step.target_tokens,
            expected_tokens=expected,
        )
        items = tuple(item_of(slot) for slot in chunk if slot not in self._number_of)
        self.steps.append(PlannedStep(planned, tuple(slot.ordinal for slot in chunk), items))
        slot = Slot(ordinal=chunk[0].ordinal, tokens=expected, summary_id=f"step {number}", depth=planned.depth)
        self._number_of[slot] = number
        self._ranges_of[slot] = ranges
        self.tokens += expected - planned.source_tokens
        self.messages -= sum(slot.is_raw for slot in chunk)
        self.items -= len(chunk) - 1
        return slot

    def _ranges(self, chunk: Sequence[Slot]) -> tuple[SeqRange, ...]:
        """Return the ranges of messages in the slots; adjacent ranges are joined."""
        joined: list[SeqRange] = []
        for slot in chunk:
            for each in self._ranges_of.get(slot) or (SeqRange(slot.ordinal, slot.last_seq or slot.ordinal),):
                if joined and each.first_seq <= joined[-1].last_seq + 1:
                    last = joined.pop()
                    each = SeqRange(last.first_seq, max(last.last_seq, each.last_seq))
                joined.append(each)
        return tuple(joined)


def forecast(slots: Sequence[Slot], policy: CompactionPolicy) -> Forecast:
    """Forecast the run that a manual request would start."""
    expected = Forecast(slots)
    steps = leaf_and_condensed_steps(slots, policy)
    slot: Slot | None = None
    while len(expected.steps) < policy.max_passes:
        try:
            slot = expected.make(steps.send(slot))
        except StopIteration:
            break
    return expected


@dataclass(frozen=True)
class Estimate:
    """The expected cost of a plan: calls, tokens read and written, and money."""

    calls: int
    tokens_in: int
    tokens_out: int
    # None if no price is known.
    cost: float | None


def item_of(slot: Slot) -> PlannedItem:
    """Return what a plan stores of a context item, to detect changes later."""
    shown = slot.summary_id if slot.message_id is None else f"msg_{slot.message_id}"
    return PlannedItem(ordinal=slot.ordinal, id=shown or "", tokens=slot.tokens)


def estimate(steps: Sequence[PlannedStep], *, calls_model: bool, prices: tuple[float, float] | None = None) -> Estimate:
    """Estimate the cost of the steps, if each first answer is accepted.

    All values are 0 without a model. `prices` are for a million input and output tokens; None if unknown.
    """
    if not calls_model:
        return Estimate(calls=0, tokens_in=0, tokens_out=0, cost=0.0)
    tokens_in = sum(min(each.step.source_tokens, MOST_SOURCE_TOKENS) + PROMPT_TOKENS for each in steps)
    tokens_out = sum(each.step.target_tokens for each in steps)
    cost = cost_of(tokens_in, tokens_out, prices=prices)
    return Estimate(calls=len(steps), tokens_in=tokens_in, tokens_out=tokens_out, cost=cost)

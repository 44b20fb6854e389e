"""Generate the steps of a run, each from the result of the step before. Pure.

After each step, the caller sends back the slot that replaces the step's chunk. A run makes this slot from a real
summary, a forecast from an expected one. So both follow the same steps.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from compaction.planning import planner
from compaction.planning.planner import Slot
from compaction.policy import CompactionPolicy
from conversations.types import SummaryKind


@dataclass(frozen=True)
class Step:
    """One summary to make: its slots, and its target length."""

    chunk: tuple[Slot, ...]
    kind: SummaryKind
    target_tokens: int
    # The last summary before a leaf chunk, whose content need not be repeated.
    previous: Slot | None = None

    @property
    def depth(self) -> int:
        """The depth of the summary; 0 for a leaf summary."""
        return 1 + max(-1 if slot.depth is None else slot.depth for slot in self.chunk)


# The caller sends None if no summary was cheaper than its chunk.
Steps = Generator[Step, Slot | None, None]


class Summaries:
    """The summaries in the context, to find the one before an ordinal."""

    def __init__(self, slots: Iterable[Slot]) -> None:
        self._slots = [slot for slot in slots if not slot.is_raw]

    def before(self, ordinal: int) -> Slot | None:
        place = bisect_left(self._slots, ordinal, key=attrgetter("ordinal"))
        return self._slots[place - 1] if place else None

    def add(self, slot: Slot) -> None:
        self._slots.insert(bisect_left(self._slots, slot.ordinal, key=attrgetter("ordinal")), slot)


def leaf_and_condensed_steps(slots: Sequence[Slot], policy: CompactionPolicy) -> Steps:
    """Yield the steps of a run on these slots: leaf summaries, then condensed ones."""
    protected = planner.fresh_tail(slots, policy)
    summaries = Summaries(slots)
    leaves: dict[tuple[Slot, ...], Slot] = {}
    for chunk in planner.leaf_chunks(slots, protected, policy):
        previous = summaries.before(chunk[0].ordinal)
        slot = yield Step(chunk, SummaryKind.LEAF, planner.leaf_target(chunk, policy), previous)
        if slot is not None:
            leaves[chunk] = slot
            summaries.add(slot)
    context = _context_after(slots, leaves)
    while (condensed := planner.condensed_chunk(context, protected, policy)) is not None:
        slot = yield Step(condensed, SummaryKind.CONDENSED, planner.condensed_target(condensed, policy))
        if slot is None:
            # The planner would propose the same chunk again.
            return
        context = _context_after(context, {condensed: slot})


def _context_after(slots: Sequence[Slot], summary_of: Mapping[tuple[Slot, ...], Slot]) -> list[Slot]:
    """Return the context in which each chunk is replaced by its summary."""
    gone = {source.ordinal for chunk in summary_of for source in chunk}
    made = {summary.ordinal: summary for summary in summary_of.values()}
    return [made.get(slot.ordinal, slot) for slot in slots if slot.ordinal in made or slot.ordinal not in gone]

"""The steps of a run wait for what came of the one before."""

from __future__ import annotations

from compaction.planning.planner import Slot
from compaction.planning.steps import Step, leaf_and_condensed_steps
from compaction.policy import CompactionPolicy
from conversations.types import SummaryKind
from tests.compaction.slots import chat, follow, ordinals, summary

POLICY = CompactionPolicy(fresh_tail_count=4, leaf_chunk_tokens=2000, leaf_target_tokens=200, condense_fan_in=3)


def steps_without(place: int, slots: list[Slot]) -> list[Step]:
    """The steps where all get a summary but the one at this place."""
    places = iter(range(1, 1000))

    def make(step: Step) -> Slot | None:
        now = next(places)
        if now == place:
            return None
        return Slot(ordinal=step.chunk[0].ordinal, tokens=300, summary_id=f"sum_{now}", depth=step.depth)

    return follow(leaf_and_condensed_steps(slots, POLICY), make)


def test_each_leaf_step_knows_the_summary_before_it():
    steps = steps_without(0, [summary(1, depth=3), *chat(16)[1:]])

    previous = [step.previous and step.previous.summary_id for step in steps if step.kind is SummaryKind.LEAF]
    assert previous == ["sum_1", "sum_1", "sum_2"]


def test_a_chunk_that_no_summary_stands_for_stays_and_the_next_is_proposed():
    steps = steps_without(2, chat(24))

    leaves = [ordinals(step.chunk) for step in steps if step.kind is SummaryKind.LEAF]
    assert leaves == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16], [17, 18, 19, 20]]
    assert ordinals(steps[-1].chunk) == [1, 5, 6, 7, 8, 9, 13]


def test_condensing_ends_where_no_summary_would_have_been_cheaper():
    steps = steps_without(10, chat(40))

    assert [step.kind for step in steps].count(SummaryKind.CONDENSED) == 1

"""The steps of a run wait for what came of the one before."""

from __future__ import annotations

from compaction.planning.planner import Slot
from compaction.policy import CompactionPolicy
from compaction.steps import Step, follow, leaf_and_condensed_steps
from conversations.types import SummaryKind
from tests.compaction.test_planner import chat, ordinals, summary

POLICY = CompactionPolicy(fresh_tail_count=4, leaf_chunk_tokens=2000, leaf_target_tokens=200, condense_fan_in=3)


def followed(slots: list[Slot], *, without: int = 0, most: int = 100, enough: int = 100) -> tuple[bool, list[Step]]:
    """The steps that are proposed where all are made but one, and whether they came to their end."""
    proposed: list[Step] = []

    def make(step: Step) -> Slot | None:
        proposed.append(step)
        if len(proposed) == without:
            return None
        return Slot(ordinal=step.chunk[0].ordinal, tokens=300, summary_id=f"sum_{len(proposed)}", depth=step.depth)

    ended = follow(
        leaf_and_condensed_steps(slots, POLICY),
        make=make,
        is_enough=lambda: len(proposed) >= enough,
        is_out_of_bounds=lambda: len(proposed) >= most,
    )
    return ended, proposed


def test_each_leaf_step_is_told_of_the_summary_before_it():
    _, steps = followed([summary(1, depth=3), *chat(16)[1:]])

    previous = [step.previous and step.previous.summary_id for step in steps if step.kind is SummaryKind.LEAF]
    assert previous == ["sum_1", "sum_1", "sum_2"]


def test_a_chunk_that_no_summary_stands_for_stays_and_the_next_is_proposed():
    ended, steps = followed(chat(24), without=2)

    leaves = [ordinals(step.chunk) for step in steps if step.kind is SummaryKind.LEAF]
    assert ended
    assert leaves == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16], [17, 18, 19, 20]]
    assert ordinals(steps[-1].chunk) == [1, 5, 6, 7, 8, 9, 13]


def test_condensing_ends_where_no_summary_would_have_been_cheaper():
    ended, steps = followed(chat(40), without=10)

    assert ended
    assert [step.kind for step in steps].count(SummaryKind.CONDENSED) == 1


def test_what_is_enough_ends_well_and_a_bound_does_not():
    enough, made_by_then = followed(chat(40), enough=2)
    stopped, made_before = followed(chat(40), most=2)

    assert (enough, len(made_by_then)) == (True, 2)
    assert (stopped, len(made_before)) == (False, 2)


def test_a_bound_that_is_reached_at_the_end_stops_nothing():
    _, steps = followed(chat(16))

    assert followed(chat(16), most=len(steps)) == (True, steps)

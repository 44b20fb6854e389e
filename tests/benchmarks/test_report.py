from __future__ import annotations

import pytest

from tests.benchmarks.measure import Duel, Laps, by_passes
from tests.benchmarks.report import BEYOND_F, F, Line, at_least, at_most


def test_a_goal_judges_the_ratio_or_the_excess_over_the_floor_or_our_own_figure():
    in_f = Line("1", "append", floor=1000, ours=650, ratio=0.65, goal=at_least(0.7, F))
    in_ms = Line("9", "assemble", floor=1, ours=2.9, ratio=0.34, goal=at_most(3, " ms"))
    beyond_f = Line("2", "growth", floor=0.35, ours=0.4, goal=at_most(0.1, BEYOND_F))
    without_goal = Line("2", "writers", ours=1.5)

    assert (in_f.is_met, in_ms.is_met, beyond_f.is_met, without_goal.is_met) == (False, True, True, None)


def test_a_time_or_a_rate_is_also_judged_at_the_pace_of_this_machine_and_a_ratio_never():
    slow = 0.5
    time = Line("9", "assemble", ours=5, goal=at_most(3, " ms"), pace=slow)
    too_slow = Line("9", "assemble", ours=7, goal=at_most(3, " ms"), pace=slow)
    rate = Line("12", "read back", ours=30_000, goal=at_least(50_000, " msg/s"), pace=slow)
    in_f = Line("1", "append", ours=1, ratio=0.4, goal=at_least(0.7, F), pace=slow)
    memory = Line("10", "client's memory", ours=200, goal=at_most(150, " MB"), pace=slow)

    lines = [time, too_slow, rate, in_f, memory]

    assert not any(line.is_met for line in lines)
    assert [line.is_met_at_pace for line in lines] == [True, False, True, False, False]
    assert [line.cells()[-1] for line in (time, too_slow)] == ["met at this pace", "NOT MET"]


def test_speed_compares_laps_that_were_run_side_by_side():
    # A storm in the second pair of laps slows both alike.
    found = Duel(floor=Laps([1.0, 9.0, 1.0], [100, 100, 100]), ours=Laps([2.0, 18.0, 2.0], [100, 100, 100]))

    assert found.speed == pytest.approx(0.5)
    assert found.floor.rate == pytest.approx(100)
    assert found.ours.rate == pytest.approx(50)


def test_in_passes_each_does_all_pieces_before_the_other_does_and_the_first_pass_counts_for_nothing():
    done = []

    found = by_passes(
        floor=lambda piece: done.append(f"floor {piece}"),
        ours=lambda piece: done.append(f"ours {piece}"),
        pieces=[1, 2],
        passes=2,
    )

    assert done == ["floor 1", "floor 2", "ours 1", "ours 2"] * 3
    assert (len(found.floor.seconds), len(found.ours.seconds)) == (4, 4)

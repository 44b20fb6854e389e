"""Runs as a picture: every hour is there, and every way to end is in one layer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from compaction.types import Outcome, RunsInAnHour
from lcmsite.dashboard.parts.charting import LAYERS, chart_of

SINCE = datetime(2026, 1, 31, 9, tzinfo=UTC)


def ran(hours: int, outcome: Outcome, runs: int, freed: int = 0) -> RunsInAnHour:
    return RunsInAnHour(hour=SINCE + timedelta(hours=hours), outcome=outcome, runs=runs, tokens_freed=freed)


def test_every_outcome_is_in_one_layer():
    layered = [outcome for outcomes in LAYERS.values() for outcome in outcomes]

    assert sorted(layered) == sorted(Outcome)


def test_hours_without_a_run_are_there_too():
    chart = chart_of([ran(2, Outcome.COMPACTED, 3, 700)], since=SINCE, hours=4)

    assert [each.counts for each in chart.hours] == [(0, 0, 0), (0, 0, 0), (3, 0, 0), (0, 0, 0)]
    assert [each.hour for each in chart.busy] == [SINCE + timedelta(hours=2)]
    assert (chart.runs, chart.problems, chart.tokens_freed) == (3, 0, 700)


def test_outcomes_of_one_layer_add_up():
    runs = [ran(0, Outcome.FAILED, 1), ran(0, Outcome.ABANDONED, 2), ran(0, Outcome.SKIPPED, 4)]

    data = chart_of(runs, since=SINCE, hours=1).data

    assert data["hours"] == [int(SINCE.timestamp())]
    assert [layer["counts"] for layer in data["layers"]] == [[0], [4], [3]]

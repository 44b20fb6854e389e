"""Runs per hour for the chart of the overview, in three stacked layers. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from compaction.types import Outcome, RunsInAnHour

# Name, colour and outcomes of each layer; every outcome is in exactly one.
LAYERS: tuple[tuple[str, str, frozenset[Outcome]], ...] = (
    ("compacted", "good", frozenset({Outcome.COMPACTED, Outcome.RUNNING})),
    (
        "nothing to do",
        "quiet",
        frozenset({Outcome.NOT_NEEDED, Outcome.NOTHING_TO_DO, Outcome.SKIPPED, Outcome.DISABLED}),
    ),
    (
        "problems",
        "bad",
        frozenset({Outcome.EXHAUSTED, Outcome.STOPPED, Outcome.ABANDONED, Outcome.FAILED, Outcome.UNAVAILABLE}),
    ),
)


@dataclass(frozen=True)
class HourOfRuns:
    """The runs of one hour by layer, and the tokens they freed."""

    hour: datetime
    counts: tuple[int, ...]
    tokens_freed: int


@dataclass(frozen=True)
class Chart:
    """All hours of the chart, idle ones included."""

    hours: tuple[HourOfRuns, ...]
    totals: tuple[int, ...]

    @property
    def runs(self) -> int:
        return sum(self.totals)

    @property
    def problems(self) -> int:
        return self.totals[-1]

    @property
    def tokens_freed(self) -> int:
        return sum(each.tokens_freed for each in self.hours)

    @property
    def busy(self) -> tuple[HourOfRuns, ...]:
        """The hours with runs, newest first."""
        return tuple(each for each in reversed(self.hours) if any(each.counts))

    @property
    def data(self) -> dict[str, Any]:
        """The data for the script: hours as Unix time, and the layers from the bottom up."""
        return {
            "hours": [int(each.hour.timestamp()) for each in self.hours],
            "layers": [
                {"name": name, "tone": tone, "counts": [each.counts[place] for each in self.hours]}
                for place, (name, tone, _) in enumerate(LAYERS)
            ],
        }


def chart_of(runs: Iterable[RunsInAnHour], *, since: datetime, hours: int) -> Chart:
    """The chart of the hours from `since` on."""
    by_hour: dict[datetime, list[RunsInAnHour]] = {}
    for each in runs:
        by_hour.setdefault(each.hour, []).append(each)
    shown = []
    for number in range(hours):
        hour = since + timedelta(hours=number)
        found = by_hour.get(hour, [])
        counts = tuple(sum(each.runs for each in found if each.outcome in outcomes) for _, _, outcomes in LAYERS)
        shown.append(HourOfRuns(hour=hour, counts=counts, tokens_freed=sum(each.tokens_freed for each in found)))
    totals = tuple(sum(each.counts[place] for each in shown) for place in range(len(LAYERS)))
    return Chart(hours=tuple(shown), totals=totals)

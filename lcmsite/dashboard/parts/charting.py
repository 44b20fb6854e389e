"""Runs per hour for the chart of the overview, in three stacked layers. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from compaction.types import Outcome, RunsInAnHour

# The outcomes in each layer, by the name and colour of the layer. Each outcome is in exactly one layer.
LAYERS = {
    ("compacted", "good"): {Outcome.COMPACTED, Outcome.RUNNING},
    ("nothing to do", "quiet"): {Outcome.NOT_NEEDED, Outcome.NOTHING_TO_DO, Outcome.SKIPPED, Outcome.DISABLED},
    ("problems", "bad"): {
        Outcome.EXHAUSTED, Outcome.STOPPED, Outcome.ABANDONED, Outcome.FAILED, Outcome.UNAVAILABLE,
    },
}  # fmt: skip


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

    @property
    def runs(self) -> int:
        return sum(sum(each.counts) for each in self.hours)

    @property
    def problems(self) -> int:
        return sum(each.counts[-1] for each in self.hours)

    @property
    def tokens_freed(self) -> int:
        return sum(each.tokens_freed for each in self.hours)

    @property
    def busy(self) -> list[HourOfRuns]:
        """The hours with runs, newest first."""
        return [each for each in reversed(self.hours) if any(each.counts)]

    @property
    def data(self) -> dict[str, Any]:
        """The chart's JSON data: hours as Unix times, and layers from the bottom up."""
        return {
            "hours": [int(each.hour.timestamp()) for each in self.hours],
            "layers": [
                {"name": name, "tone": tone, "counts": [each.counts[place] for each in self.hours]}
                for place, (name, tone) in enumerate(LAYERS)
            ],
        }


def chart_of(runs: Iterable[RunsInAnHour], *, since: datetime, hours: int) -> Chart:
    """The chart of this many hours from `since` on."""
    known, shown = list(runs), []
    for number in range(hours):
        hour = since + timedelta(hours=number)
        found = [each for each in known if each.hour == hour]
        counts = tuple(sum(each.runs for each in found if each.outcome in outcomes) for outcomes in LAYERS.values())
        shown.append(HourOfRuns(hour=hour, counts=counts, tokens_freed=sum(each.tokens_freed for each in found)))
    return Chart(hours=tuple(shown))

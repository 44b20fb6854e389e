"""What was measured, as a table: each work with its floor, and each goal as met or not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tests.benchmarks.measure import Duel
from tests.tables import in_columns, met

# The units of what depends on how fast the machine is.
TIMES = {" s", " ms"}
RATES = {" msg/s"}
# The unit of a ratio: ours as a share of the floor's speed.
F = " F"
# The unit of growth: what ours grows beyond the floor, for both were measured in the same weather.
BEYOND_F = " + F"


@dataclass(frozen=True)
class Goal:
    """A limit, and which side of it is good.

    In F it judges the ratio, beyond F how much more ours is than the floor, in any other unit our own figure.
    """

    sign: str
    limit: float
    unit: str

    def is_met(self, value: float) -> bool:
        return value >= self.limit if self.sign == ">=" else value <= self.limit

    def at(self, pace: float) -> Goal:
        """The same goal on a machine of another pace: what is a time or a rate there becomes one here."""
        if self.unit in TIMES:
            return replace(self, limit=self.limit / pace)
        return replace(self, limit=self.limit * pace) if self.unit in RATES else self

    def __str__(self) -> str:
        return f"{self.sign} {shown(self.limit)}{self.unit}"


def at_least(limit: float, unit: str) -> Goal:
    return Goal(">=", limit, unit)


def at_most(limit: float, unit: str) -> Goal:
    return Goal("<=", limit, unit)


@dataclass(frozen=True)
class Line:
    """One work. `ratio` is ours beside the floor, above 1 where ours is faster.

    `pace` is the speed of the machine while it was measured, as a share of that on which the goals were set.
    """

    number: str
    work: str
    ours: float
    unit: str = ""
    floor: float | None = None
    ratio: float | None = None
    goal: Goal | None = None
    pace: float = 1

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is met as it stands; None where there is none."""
        return None if self.goal is None else self._meets(self.goal)

    @property
    def is_met_at_pace(self) -> bool | None:
        """Whether it is met by what this machine's pace makes of it; None where there is none."""
        return None if self.goal is None else self._meets(self.goal.at(self.pace))

    def _meets(self, goal: Goal) -> bool:
        if goal.unit == F and self.ratio is not None:
            return goal.is_met(self.ratio)
        if goal.unit == BEYOND_F and self.floor is not None:
            return goal.is_met(self.ours - self.floor)
        return goal.is_met(self.ours)

    def cells(self) -> tuple[str, ...]:
        return (
            self.number,
            self.work,
            "" if self.floor is None else shown(self.floor),
            shown(self.ours),
            self.unit,
            "" if self.ratio is None else f"{self.ratio:.2f}",
            "" if self.goal is None else str(self.goal),
            "met at this pace" if self.is_met_at_pace and not self.is_met else met(self.is_met),
        )


def rates(number: str, work: str, found: Duel, goal: Goal | None = None) -> Line:
    """A duel in messages a second."""
    return Line(number, work, found.ours.rate, "msg/s", floor=found.floor.rate, ratio=found.speed, goal=goal)


def milliseconds(number: str, work: str, found: Duel, goal: Goal | None = None, *, share: float | None = None) -> Line:
    """A duel in milliseconds for one piece, in the median lap or in that at a share: 0.95 for p95."""
    floor, ours = (1000 * (laps.cost if share is None else laps.cost_at(share)) for laps in (found.floor, found.ours))
    return Line(number, work, ours, "ms", floor=floor, ratio=floor / ours, goal=goal)


def growth(number: str, work: str, by_size: Mapping[int, Duel], goal: Goal) -> list[Line]:
    """How the cost of a piece grows with the history, where there are two: 0 not at all, 1 in proportion."""
    if len(by_size) < 2:
        return []
    before, last = sorted(by_size)[-2:]
    floor, ours = (
        math.log(getattr(by_size[last], who).cost / getattr(by_size[before], who).cost, last / before)
        for who in ("floor", "ours")
    )
    return [Line(number, f"{work}, growth exponent {before:,} to {last:,}", floor=floor, ours=ours, goal=goal)]


HEADINGS = ("goal", "work", "floor", "ours", "", "ratio", "wanted", "")


def shown(value: float) -> str:
    """A figure with as many digits as mean something."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(lines: Sequence[Line]) -> str:
    """The lines in columns, by the number of their goal."""
    in_order = sorted(lines, key=lambda line: int(line.number))
    return in_columns([HEADINGS, *(line.cells() for line in in_order)], to_the_right={2, 3, 5, 6})


def verdict(lines: Sequence[Line]) -> str:
    goals = [line for line in lines if line.goal is not None]
    as_they_stand = sum(bool(line.is_met) for line in goals)
    at_pace = sum(bool(line.is_met or line.is_met_at_pace) for line in goals)
    return f"{as_they_stand} of {len(goals)} goals met as they stand, {at_pace} at this machine's pace."

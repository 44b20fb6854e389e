"""What was measured, as a table: each work with its floor, and each goal as met or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tests.tables import in_columns, met


class Better(Enum):
    """Which way a goal lies from its limit."""

    HIGHER = "at least"
    LOWER = "at most"


# The unit of a ratio: ours as a share of the floor's speed.
F = " F"

# The unit of growth: what ours grows beyond the floor, for both were measured in the same weather.
BEYOND_F = " + F"


@dataclass(frozen=True)
class Goal:
    """A limit, and which side of it is good.

    In F it judges the ratio, beyond F how much more ours is than the floor, in any other unit our own figure.
    """

    limit: float
    better: Better
    unit: str

    def is_met(self, value: float) -> bool:
        return value >= self.limit if self.better is Better.HIGHER else value <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.better is Better.HIGHER else "<="
        return f"{sign} {shown(self.limit)}{self.unit}"


def at_least(limit: float, unit: str) -> Goal:
    return Goal(limit, Better.HIGHER, unit)


def at_most(limit: float, unit: str) -> Goal:
    return Goal(limit, Better.LOWER, unit)


@dataclass(frozen=True)
class Line:
    """One work. `ratio` is ours beside the floor, above 1 where ours is faster."""

    number: str
    work: str
    ours: float
    unit: str = ""
    floor: float | None = None
    ratio: float | None = None
    goal: Goal | None = None

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is met; None where there is none."""
        if self.goal is None:
            return None
        if self.goal.unit == F and self.ratio is not None:
            return self.goal.is_met(self.ratio)
        if self.goal.unit == BEYOND_F and self.floor is not None:
            return self.goal.is_met(self.ours - self.floor)
        return self.goal.is_met(self.ours)

    def cells(self) -> tuple[str, ...]:
        return (
            self.number,
            self.work,
            "" if self.floor is None else shown(self.floor),
            shown(self.ours),
            self.unit,
            "" if self.ratio is None else f"{self.ratio:.2f}",
            "" if self.goal is None else str(self.goal),
            met(self.is_met),
        )


HEADINGS = ("goal", "work", "floor", "ours", "", "ratio", "wanted", "")
ON_THE_RIGHT = {2, 3, 5, 6}


def shown(value: float) -> str:
    """A figure with as many digits as mean something."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(lines: Sequence[Line]) -> str:
    """The lines in columns, by the number of their goal."""
    in_order = sorted(lines, key=lambda line: int(line.number))
    return in_columns([HEADINGS, *(line.cells() for line in in_order)], to_the_right=ON_THE_RIGHT)


def verdict(lines: Sequence[Line]) -> str:
    goals = [line.is_met for line in lines if line.goal is not None]
    return f"{sum(map(bool, goals))} of {len(goals)} goals met."

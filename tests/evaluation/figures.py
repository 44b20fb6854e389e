"""What every chapter of `make eval` is told in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured value; `goal` is what it should reach, None for a peer's."""

    number: int
    measure: str
    method: str
    value: float
    goal: float | None = None

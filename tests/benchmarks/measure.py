"""Stopwatches: two ways to do one thing, by turns, so that both meet the same weather on a shared machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass
class Laps:
    """Seconds that each lap of one work took, and how much was done in it."""

    seconds: list[float] = field(default_factory=list)
    done: list[int] = field(default_factory=list)

    @contextmanager
    def lap(self, done: int = 1) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds.append(time.perf_counter() - started)
        self.done.append(done)

    @property
    def costs(self) -> list[float]:
        """Seconds for one piece, lap by lap."""
        return [seconds / done for seconds, done in zip(self.seconds, self.done, strict=True)]

    @property
    def cost(self) -> float:
        """Seconds for one piece, in the median lap."""
        return statistics.median(self.costs)

    @property
    def rate(self) -> float:
        """Pieces a second, in the median lap."""
        return 1 / self.cost

    @property
    def total(self) -> float:
        return sum(self.seconds)

    def cost_at(self, share: float) -> float:
        """Seconds for one piece in the lap at this share of all, from the quickest on: 0.95 for p95."""
        return sorted(self.costs)[int(share * len(self.costs))]


@dataclass
class Duel:
    """Ours and the floor, lap by lap beside each other."""

    floor: Laps = field(default_factory=Laps)
    ours: Laps = field(default_factory=Laps)

    def __iadd__(self, other: Duel) -> Duel:
        for laps, more in ((self.floor, other.floor), (self.ours, other.ours)):
            laps.seconds += more.seconds
            laps.done += more.done
        return self

    @property
    def speed(self) -> float:
        """Ours as a share of the floor's speed: the median over laps that were run one after the other."""
        pairs = zip(self.floor.costs, self.ours.costs, strict=True)
        return statistics.median(floor / ours for floor, ours in pairs)


def duel(
    *, floor: Callable[[Any], object], ours: Callable[[Any], object], work: Iterable[Sequence[Any]], warm_up: int = 1
) -> Duel:
    """Have both do each piece of work as one lap; the first ones only warm up.

    `work` holds pairs: the floor's piece and ours.
    """
    result = Duel()
    for number, (for_floor, for_ours) in enumerate(work):
        floor_lap, our_lap = (Laps(), Laps()) if number < warm_up else (result.floor, result.ours)
        with floor_lap.lap(_size(for_floor)):
            floor(for_floor)
        with our_lap.lap(_size(for_ours)):
            ours(for_ours)
    return result


def by_passes(
    *, floor: Callable[[Any], object], ours: Callable[[Any], object], pieces: Sequence[Any], passes: int
) -> Duel:
    """Have both do all pieces, each of which is a lap, in one pass after the other; the first pass only warms up.

    For what takes a few milliseconds: by turns of single pieces, either would be timed with the caches that the other
    has just filled with its own.
    """
    result = Duel()
    for number in range(1 + passes):
        taken = Duel() if number == 0 else result
        for do, laps in ((floor, taken.floor), (ours, taken.ours)):
            for piece in pieces:
                with laps.lap():
                    do(piece)
    return result


def _size(piece: Any) -> int:
    return len(piece) if isinstance(piece, list) else 1


def blocks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of this size; the last may be shorter."""
    iterator = iter(items)
    while block := list(islice(iterator, size)):
        yield block


def peak_memory_mb() -> float:
    """The most memory this process has had at once, in MB."""
    # Not ru_maxrss, which a new process inherits from the one that started it.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise LookupError("This kernel does not say VmHWM.")

"""What the rooms count and time: each says it where it happens, and the site exports it.

A meter that nobody exports costs a comparison, so that the command line need not load what exports them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Target(Protocol):
    """Where a meter's figures go."""

    def take(self, amount: float, labels: tuple[str, ...]) -> None: ...


@dataclass
class Meter:
    """One figure under its exported name: a sum of amounts or, with `buckets`, how they are spread.

    The values of a label are few and known beforehand: never an id, never what anybody wrote. `known` are those that
    are shown from the start, as nothing can be said of a series that is not there yet.
    """

    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    known: tuple[tuple[str, ...], ...] = ()
    target: Target | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        METERS.append(self)

    def add(self, amount: float = 1, *labels: str) -> None:
        """Count so much more, or one amount among others. What a transaction may still take back is no event yet."""
        if self.target is not None:
            self.target.take(amount, labels)

    @contextmanager
    def milliseconds(self, *labels: str) -> Iterator[None]:
        """Take how long the block takes, also when it fails."""
        if self.target is None:
            yield
            return
        began = time.perf_counter()
        try:
            yield
        finally:
            self.target.take((time.perf_counter() - began) * 1000, labels)

    def timing(self, function: Callable[P, T]) -> Callable[P, T]:
        """Makes of a function one whose calls are timed."""

        @wraps(function)
        def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            with self.milliseconds():
                return function(*args, **kwargs)

        return timed


METERS: list[Meter] = []
"""Every meter there is; whoever exports them asks for them when all rooms are loaded."""

MILLISECONDS = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0)

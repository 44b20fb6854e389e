"""Limits on how many operations one process runs at once: in all, of the heavy ones, and of one caller.

The server has more threads than operations run at once; the others wait here, for a short time, and are then refused.
Each process counts for itself, because the threads that must stay free for others are its own.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

from django.conf import settings
from django.db import connections

from conversations.errors import LcmError
from lcmsite.ops.metrics.counters import TOO_MANY_AT_ONCE

# Requests of one process that may wait here, each in a thread.
MOST_WAITING = 58
LONGEST_WAIT_SECONDS = 5.0


class TooManyAtOnce(LcmError):
    """Too much runs at once, of this caller or of heavy operations."""

    code = "too_many_at_once"
    retryable = True


@dataclass(frozen=True)
class Limits:
    """How many operations may run and wait at once. Everything follows from `at_once`."""

    at_once: int
    waiting: int = MOST_WAITING
    longest_wait: float = LONGEST_WAIT_SECONDS

    @property
    def heavy(self) -> int:
        """Half of what runs at once: an append always finds a free place among the rest."""
        return max(1, self.at_once // 2)

    @property
    def of_one_caller(self) -> int:
        """All but one, so that another caller finds a place at once."""
        return max(1, self.at_once - 1)

    @property
    def heavy_of_one_caller(self) -> int:
        return max(1, self.heavy - 1)

    @property
    def threads(self) -> int:
        """How many threads a process needs, so that what waits here takes none from what runs."""
        return self.at_once + self.waiting


@dataclass(eq=False)
class Place:
    """One operation that runs or waits."""

    caller: str
    heavy: bool
    admitted: threading.Event = field(default_factory=threading.Event)


@dataclass
class Gate:
    """Admits operations. A place that becomes free goes to the caller with the fewest running, then by arrival."""

    limits: Limits
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _running: Counter[tuple[str, bool]] = field(default_factory=Counter, init=False)
    _waiting: list[Place] = field(default_factory=list, init=False)

    @contextmanager
    def entered(self, caller: str, *, heavy: bool) -> Iterator[None]:
        """Run the block as one operation of the caller; TooManyAtOnce if none may begin in time."""
        place = Place(caller, heavy)
        if not self._begin(place):
            # Others may need the connection while this thread waits.
            for each in connections.all(initialized_only=True):
                if not each.in_atomic_block:
                    each.close()
            self._wait(place)
        try:
            yield
        finally:
            with self._lock:
                self._running[(caller, heavy)] -= 1
                if not self._running[(caller, heavy)]:
                    del self._running[(caller, heavy)]
                self._admit()

    def _begin(self, place: Place) -> bool:
        """Whether the operation runs from now on; otherwise it waits. TooManyAtOnce if too many wait already."""
        with self._lock:
            # Whoever waits has no room, or would have been admitted when it became free.
            if self._has_room(place):
                self._running[(place.caller, place.heavy)] += 1
                return True
            self._require_room_to_wait(place)
            self._waiting.append(place)
            return False

    def _wait(self, place: Place) -> None:
        if place.admitted.wait(self.limits.longest_wait):
            return
        with self._lock:
            if place.admitted.is_set():
                return
            self._waiting.remove(place)
        raise _refusal(place)

    def _admit(self) -> None:
        while ready := [each for each in self._waiting if self._has_room(each)]:
            # `min` gives the first of equals, which came first.
            place = min(ready, key=lambda each: self._running_of(each.caller))
            self._waiting.remove(place)
            self._running[(place.caller, place.heavy)] += 1
            place.admitted.set()

    def _has_room(self, place: Place) -> bool:
        if self._running.total() >= self.limits.at_once:
            return False
        if self._running_of(place.caller) >= self.limits.of_one_caller:
            return False
        return not place.heavy or (
            sum(count for (_, heavy), count in self._running.items() if heavy) < self.limits.heavy
            and self._running[(place.caller, True)] < self.limits.heavy_of_one_caller
        )

    def _running_of(self, caller: str) -> int:
        return self._running[(caller, False)] + self._running[(caller, True)]

    def _require_room_to_wait(self, place: Place) -> None:
        """Refuse what would leave no thread to others: heavy operations may take half, of one caller a quarter."""
        of_caller = [each for each in self._waiting if each.caller == place.caller]
        if len(of_caller) >= self.limits.waiting * 3 // 4:
            raise _refusal(place)
        heavy = [each for each in self._waiting if each.heavy]
        if place.heavy and (
            len(heavy) >= self.limits.waiting // 2 or sum(each.heavy for each in of_caller) >= self.limits.waiting // 4
        ):
            raise _refusal(place)


def _refusal(place: Place) -> TooManyAtOnce:
    TOO_MANY_AT_ONCE.labels("heavy" if place.heavy else "other").inc()
    what = "searches and other heavy operations" if place.heavy else "requests"
    return TooManyAtOnce(f"Too many {what} run at once; try again, with fewer at the same time.")


@cache
def gate() -> Gate:
    """The gate of this process."""
    return Gate(Limits(settings.DEPLOYMENT.web_threads))

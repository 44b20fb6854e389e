"""Limit concurrent operations fairly; cancel those whose client disconnected.

An operation above the limit waits for a short time, and is then refused. The server has more threads than this limit,
so operations can wait in them. Each process has its own limits, because they keep threads of that process free.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from prometheus_client import Counter

from conversations.errors import LcmError, Unavailable

# Maximum number of requests of one process that wait here, each in a thread.
MOST_WAITING = 58
LONGEST_WAIT_SECONDS = 5.0

TOO_MANY_AT_ONCE = Counter(
    "lcm_too_many_at_once_total", "Requests refused because too much ran at once: heavy or other.", ["kind"]
)
# Create both series at the start, with 0: Prometheus computes no rate for the first event of a new series.
for _kind in ("heavy", "other"):
    TOO_MANY_AT_ONCE.labels(_kind)

SECONDS_BETWEEN_CANCELS = 0.1
LONGEST_CANCEL_SECONDS = 2.0
CANCELLED = Counter("lcm_cancelled_total", "Heavy operations cancelled because their client disconnected.")

DISCONNECTED = "lcm.disconnected"
"""The key of a request's `Disconnected` in the WSGI environ, which is Django's `request.META`."""


class TooManyAtOnce(LcmError):
    """Too many operations run at once: in total, for this caller, or heavy ones."""

    code = "too_many_at_once"
    retryable = True


class QueueFull(Exception):
    """The queue is full, in total or for this caller."""


@dataclass(eq=False)
class Place:
    """One running or waiting entry; `admit` is called when its wait ends."""

    caller: str
    admit: Callable[[], object]
    heavy: bool = False


@dataclass(frozen=True)
class Share:
    """Maximum number of entries, in total and for one caller."""

    in_all: int
    of_one_caller: int

    def has_room(self, taken: Collection[Place], caller: str) -> bool:
        return len(taken) < self.in_all and sum(each.caller == caller for each in taken) < self.of_one_caller


@dataclass(frozen=True)
class Limits:
    """How many entries may run and wait at once, and how many of them may be heavy."""

    running: Share
    waiting: Share
    heavy_running: Share = Share(0, 0)
    heavy_waiting: Share = Share(0, 0)

    @classmethod
    def of_operations(cls, at_once: int, *, waiting: int = MOST_WAITING) -> Self:
        """Limits that leave room for light operations and for a second caller."""
        heavy = max(1, at_once // 2)
        return cls(
            running=Share(at_once, max(1, at_once - 1)),
            waiting=Share(waiting, waiting * 3 // 4),
            heavy_running=Share(heavy, max(1, heavy - 1)),
            heavy_waiting=Share(waiting // 2, waiting // 4),
        )

    @property
    def threads(self) -> int:
        """The number of threads a process needs: one for each running or waiting entry."""
        return self.running.in_all + self.waiting.in_all


@dataclass
class FairQueue:
    """Admits the caller with the fewest running entries first, then by arrival."""

    limits: Limits
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _running: list[Place] = field(default_factory=list, init=False)
    _waiting: list[Place] = field(default_factory=list, init=False)

    def enter(self, place: Place) -> bool:
        """Return True to run now, False to wait; QueueFull if neither is possible."""
        with self._lock:
            # No waiting entry could run now: `leave` has admitted all that fit. So this one overtakes no other.
            if self._may_run(place):
                self._running.append(place)
                return True
            if not _has_room(self._waiting, place, self.limits.waiting, self.limits.heavy_waiting):
                raise QueueFull
            self._waiting.append(place)
            return False

    def give_up(self, place: Place) -> bool:
        """Stop waiting; False if it was admitted in the meantime."""
        with self._lock:
            if place not in self._waiting:
                return False
            self._waiting.remove(place)
            return True

    def leave(self, place: Place) -> None:
        """End a running entry and admit waiting ones; a second call does nothing."""
        with self._lock:
            if place not in self._running:
                return
            self._running.remove(place)
            while ready := [each for each in self._waiting if self._may_run(each)]:
                # On a tie, `min` returns the first entry, which arrived first.
                admitted = min(ready, key=lambda each: sum(other.caller == each.caller for other in self._running))
                self._waiting.remove(admitted)
                self._running.append(admitted)
                admitted.admit()

    def _may_run(self, place: Place) -> bool:
        return _has_room(self._running, place, self.limits.running, self.limits.heavy_running)


def _has_room(taken: Collection[Place], place: Place, share: Share, heavy_share: Share) -> bool:
    if not share.has_room(taken, place.caller):
        return False
    return not place.heavy or heavy_share.has_room([each for each in taken if each.heavy], place.caller)


@dataclass
class Gate(FairQueue):
    """Limits the operations of a process; each waits in its thread."""

    longest_wait: float = LONGEST_WAIT_SECONDS

    @contextmanager
    def entered(self, caller: str, *, heavy: bool) -> Iterator[None]:
        """Run the block as one operation; TooManyAtOnce if it cannot start in time."""
        admitted = threading.Event()
        place = Place(caller, admitted.set, heavy)
        try:
            if not self.enter(place):
                # Return the database connections to the pool: others may need them while this thread waits.
                for each in connections.all(initialized_only=True):
                    if not each.in_atomic_block:
                        each.close()
                if not admitted.wait(self.longest_wait) and self.give_up(place):
                    raise QueueFull
        except QueueFull:
            TOO_MANY_AT_ONCE.labels("heavy" if heavy else "other").inc()
            what = "searches and other heavy operations" if heavy else "requests"
            raise TooManyAtOnce(f"Too many {what} run at once; try again with fewer at a time.") from None
        try:
            yield
        finally:
            self.leave(place)


@cache
def gate() -> Gate:
    return Gate(Limits.of_operations(settings.DEPLOYMENT.web_threads))


class Disconnected:
    """An event set when the client disconnects; safe to use from any thread."""

    def __init__(self) -> None:
        self._is_set = False
        self._callbacks: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def is_set(self) -> bool:
        return self._is_set

    def add_callback(self, callback: Callable[[], object]) -> None:
        """Call `callback` once when the client disconnects, or now if it already has.

        It runs on the server's event loop, so it must not block.
        """
        with self._lock:
            if not self._is_set:
                self._callbacks.append(callback)
                return
        callback()

    def forget_callbacks(self) -> None:
        """Drop the callbacks of a finished request: its connection may serve another."""
        with self._lock:
            self._callbacks.clear()

    def set(self) -> None:
        with self._lock:
            self._is_set = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


CLIENT: ContextVar[Disconnected | None] = ContextVar("client", default=None)
"""The `Disconnected` of the request that this thread serves, if its server provides one."""


@contextmanager
def cancelled_with_client() -> Iterator[None]:
    """Cancel the block's SQL statements if the client disconnects meanwhile.

    Raises Unavailable, without running the block, if the client has disconnected already.
    """
    client = CLIENT.get()
    if client is None:
        yield
        return
    if client.is_set():
        CANCELLED.inc()
        raise Unavailable("The client has disconnected.", code="client_disconnected")
    connection: Any = connections[DEFAULT_DB_ALIAS]
    over = threading.Event()
    # Held during a cancel, so that the block cannot end: its connection could then already serve another request.
    lock = threading.Lock()

    def cancel_until_over() -> None:
        if not over.is_set():
            CANCELLED.inc()
        # Cancel repeatedly: a cancel between two statements has no effect.
        while True:
            with lock:
                if over.is_set():
                    return
                if connection.connection is not None:
                    with suppress(psycopg.Error):
                        connection.connection.cancel_safe(timeout=LONGEST_CANCEL_SECONDS)
            over.wait(SECONDS_BETWEEN_CANCELS)

    # Cancel in a separate thread: the callback may run on the event loop, which must not block.
    client.add_callback(threading.Thread(target=cancel_until_over, name="cancel", daemon=True).start)
    try:
        yield
    finally:
        with lock:
            over.set()

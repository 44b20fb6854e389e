"""Shares the threads of a web process among callers, so that one caller with many requests delays no other."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from dataclasses import dataclass, field

from django.conf import settings

from lcmsite.api.concurrency import gate
from lcmsite.catalogue.problems import Busy
from lcmsite.ops.metrics.counters import CLIENT_LIMITS
from lcmsite.server.bodies import Scope


@dataclass(frozen=True)
class Limits:
    """How many requests may be at work, how many of one caller, and how many may wait."""

    at_work: int
    of_one_caller: int
    waiting: int


def limits_of_process() -> Limits:
    """The limits that follow from the gate of this process."""
    gated = gate().limits
    return Limits(
        at_work=gated.threads,
        # What one caller may run, and as much as the gate lets it wait for heavy operations.
        of_one_caller=gated.of_one_caller + gated.waiting // 4,
        waiting=settings.DEPLOYMENT.max_waiting_requests,
    )


def caller_of(scope: Scope) -> str:
    """Tell callers apart before anybody has checked who they are: by key or session, else by address."""
    headers = dict(scope["headers"])
    if said := headers.get(b"authorization") or headers.get(b"cookie"):
        return hashlib.sha256(said).hexdigest()
    client = scope.get("client")
    return client[0] if client else ""


@dataclass
class Places:
    """Gives places to requests. A free place goes to the caller with the fewest at work, then by arrival.

    Used on the event loop only, so no lock is needed.
    """

    limits: Limits
    _at_work: Counter[str] = field(default_factory=Counter, init=False)
    _waiting: list[tuple[str, asyncio.Future[None]]] = field(default_factory=list, init=False)

    async def take(self, caller: str) -> Place:
        """Wait for a place; Busy where too many requests wait already, half of them at most of one caller."""
        if not self._has_room(caller):
            await self._wait(caller)
        else:
            self._at_work[caller] += 1
        return Place(self, caller)

    def give_back(self, caller: str) -> None:
        self._at_work[caller] -= 1
        if not self._at_work[caller]:
            del self._at_work[caller]
        self._admit()

    def _has_room(self, caller: str) -> bool:
        return self._at_work.total() < self.limits.at_work and self._at_work[caller] < self.limits.of_one_caller

    async def _wait(self, caller: str) -> None:
        of_caller = sum(waiting == caller for waiting, _ in self._waiting)
        if len(self._waiting) >= self.limits.waiting or of_caller >= (self.limits.waiting + 1) // 2:
            CLIENT_LIMITS.labels("busy").inc()
            raise Busy("Too many requests are waiting (LCM_MAX_WAITING_REQUESTS).")
        admitted = asyncio.get_running_loop().create_future()
        entry = (caller, admitted)
        self._waiting.append(entry)
        try:
            await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():
                self.give_back(caller)
            else:
                self._waiting.remove(entry)
            raise

    def _admit(self) -> None:
        while ready := [entry for entry in self._waiting if self._has_room(entry[0])]:
            # `min` gives the first of equals, which came first.
            entry = min(ready, key=lambda each: self._at_work[each[0]])
            self._waiting.remove(entry)
            self._at_work[entry[0]] += 1
            entry[1].set_result(None)


@dataclass
class Place:
    """The place of one request; it is left once."""

    places: Places
    caller: str
    is_left: bool = False

    def leave(self) -> None:
        if not self.is_left:
            self.is_left = True
            self.places.give_back(self.caller)

"""Exchanges that wait to be recorded, on disk or in memory, and their replay.

Each session is replayed in its order. An exchange that times out is retried later, with its session; other sessions go
on. One that keeps failing while others succeed is moved to `rejected`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter as Counts
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog

from lcmsite.access.keys import caller_of_hash
from lcmsite.catalogue.problems import problem_of
from lcmsite.connections import without_connections
from lcmsite.gateway.recording.exchange import Exchange, parsed
from lcmsite.gateway.recording.exchange_spool import Spool, lane_in
from lcmsite.gateway.recording.recorder import Recorder
from lcmsite.ops.metrics.counters import EXCHANGES
from lcmsite.ops.outages import is_outage
from lcmsite.types import KeyScope

logger = structlog.get_logger(__name__)

T = TypeVar("T")
# Kept in memory where neither database nor disk takes anything.
MOST_IN_MEMORY = 64 * 1024**2
# Seconds until the first retry, and between retries at most: each delay is twice the one before.
BACKOFF_SECONDS = (4.0, 300.0)
MOST_ATTEMPTS = 10


@dataclass
class Backoff:
    """An exchange that is to be retried."""

    # How many others had been recorded at the last attempt.
    recorded: int
    # Attempts between which another was recorded.
    attempts: int = 0
    until: float = 0.0


@dataclass
class Backlog:
    """What one process has still to record; used from its event loop alone."""

    spool: Spool
    threads: ThreadPoolExecutor
    # How many exchanges of a lane wait, here or on their way here.
    waiting: Counts[str] = field(default_factory=Counts)
    in_memory: deque[tuple[str, datetime, bytes]] = field(default_factory=deque)
    backoffs: dict[str, Backoff] = field(default_factory=dict)
    # Exchanges that the database has taken, here or at once.
    recorded: int = 0
    # A file that is locked while this process has the spool.
    claim: int | None = None

    async def open(self) -> None:
        """Find what an earlier process left; SpoolInUse if another has the spool."""
        self.claim = await asyncio.to_thread(self.spool.claim)
        await asyncio.to_thread(self.spool.open)
        self.waiting.update(map(lane_in, await asyncio.to_thread(self.spool.in_order)))

    async def keep(self, lane: str, received_at: datetime, data: bytes) -> None:
        """Keep an exchange of a lane that waits already, durably if possible."""
        try:
            await asyncio.to_thread(self.spool.add, data, lane=lane, received_at=received_at)
            EXCHANGES.labels("spooled").inc()
        except OSError as refusal:
            reason = type(refusal).__name__
            if sum(len(each) for *_, each in self.in_memory) + len(data) > MOST_IN_MEMORY:
                EXCHANGES.labels("lost").inc()
                logger.error("gateway_exchange_lost", reason=reason)
                self.release(lane)
                return
            self.in_memory.append((lane, received_at, data))
            logger.warning("gateway_spool_refused", reason=reason, kept_in_memory=len(self.in_memory))

    def close(self) -> None:
        """Keep what is in memory in the spool, now that this process ends."""
        while self.in_memory:
            self.keep_now(*self.in_memory.popleft())
        if self.claim is not None:
            os.close(self.claim)

    def keep_now(self, lane: str, received_at: datetime, data: bytes) -> None:
        """Keep an exchange of a process that ends; what cannot be kept is lost."""
        try:
            self.spool.add(data, lane=lane, received_at=received_at)
            EXCHANGES.labels("spooled").inc()
        except OSError as refusal:
            EXCHANGES.labels("lost").inc()
            logger.error("gateway_exchange_lost", reason=type(refusal).__name__)

    def hold(self, lane: str) -> None:
        """Have a lane wait for an exchange that is to be kept."""
        self.waiting[lane] += 1

    def release(self, lane: str) -> None:
        """Let a lane go on after one of those that it waits for."""
        self.waiting[lane] -= 1
        if self.waiting[lane] <= 0:
            del self.waiting[lane]

    async def replay(self) -> float | None:
        """Record what waits, oldest first; the seconds until the next retry is due.

        Raises while the database is away, or the disk.
        """
        # The lanes of exchanges that are retried later, and when.
        lanes: dict[str, float] = {}
        for path in await asyncio.to_thread(self.spool.in_order):
            lane, backoff = lane_in(path), self.backoffs.get(path.name)
            if backoff is not None and backoff.until > time.monotonic():
                lanes.setdefault(lane, backoff.until)
            if lane in lanes:
                continue
            is_recorded = await self.in_thread(partial(_replayed_file, path))
            if is_recorded is None and not self._is_given_up(path):
                lanes[lane] = self.backoffs[path.name].until
                continue
            await asyncio.to_thread(self.spool.remove if is_recorded else self.spool.reject, path)
            self._done(lane, is_recorded=bool(is_recorded))
            self.backoffs.pop(path.name, None)
        for lane, received_at, data in list(self.in_memory):
            is_recorded = None if lane in lanes else await self.in_thread(partial(_replayed, data))
            if is_recorded is None:
                lanes.setdefault(lane, time.monotonic() + BACKOFF_SECONDS[0])
                continue
            self.in_memory.remove((lane, received_at, data))
            self._done(lane, is_recorded=is_recorded)
        return max(0.1, min(lanes.values()) - time.monotonic()) if lanes else None

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run the work in a thread, without a database connection left in it."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, without_connections, work)

    def _done(self, lane: str, *, is_recorded: bool) -> None:
        self.recorded += is_recorded
        EXCHANGES.labels("replayed" if is_recorded else "rejected").inc()
        self.release(lane)

    def _is_given_up(self, path: Path) -> bool:
        """Plan another attempt of an exchange; whether it has failed too often."""
        backoff = self.backoffs.setdefault(path.name, Backoff(recorded=self.recorded))
        # While the database takes none, it is not the exchange's fault.
        backoff.attempts += self.recorded > backoff.recorded
        backoff.recorded = self.recorded
        backoff.until = time.monotonic() + min(BACKOFF_SECONDS[0] * 2**backoff.attempts, BACKOFF_SECONDS[1])
        if backoff.attempts >= MOST_ATTEMPTS:
            logger.error("gateway_exchange_rejected", code="timeout")
        return backoff.attempts >= MOST_ATTEMPTS


def recorder_of(exchange: Exchange) -> Recorder:
    """The recorder of an exchange's workspace; raises where its key is not valid."""
    caller = caller_of_hash(exchange.key_hash)
    caller.require(KeyScope.WRITE)
    return Recorder.from_settings(caller.scope)


def _replayed_file(path: Path) -> bool | None:
    try:
        data = path.read_bytes()
    except OSError as error:
        # Such as a file of another user: later exchanges do not wait for it.
        logger.error("gateway_spool_unreadable", reason=type(error).__name__)
        return None
    return _replayed(data)


def _replayed(data: bytes) -> bool | None:
    """Record an exchange; False if no attempt can, None if a later one may."""
    try:
        exchange, outcome = parsed(data)
        recorder = recorder_of(exchange)
        recorder.record_answer(exchange, recorder.record_request(exchange), outcome)
    except Exception as error:
        problem = problem_of(error)
        if is_outage(error):
            raise
        if problem.retryable:
            logger.info("gateway_replay_retried_later", code=problem.code)
            return None
        logger.error("gateway_exchange_rejected", code=problem.code, exc_info=error)
        return False
    return True

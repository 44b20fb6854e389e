"""Keep exchanges that wait to be recorded, on disk or in memory, and replay them.

Each lane (a key's session) is replayed in order. If an exchange times out, its lane is retried later; other lanes go
on. An exchange that keeps failing while others succeed is moved to `rejected`.
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
from lcmsite.connections import closing_connections
from lcmsite.gateway.recording.exchange import Exchange, parse_exchange
from lcmsite.gateway.recording.exchange_spool import Spool, lane_in
from lcmsite.gateway.recording.recorder import Recorder
from lcmsite.ops.metrics.counters import EXCHANGES
from lcmsite.ops.outages import is_outage
from lcmsite.types import KeyScope

logger = structlog.get_logger(__name__)

T = TypeVar("T")
# Maximum number of bytes kept in memory while neither the database nor the disk accepts data.
MOST_IN_MEMORY = 64 * 1024**2
# The first and the longest delay before a retry, in seconds; each delay is twice the one before.
BACKOFF_SECONDS = (4.0, 300.0)
MOST_ATTEMPTS = 10


@dataclass
class Backoff:
    """The retry state of an exchange."""

    # How many exchanges had been recorded at the time of the last attempt.
    recorded_count: int
    # Failed attempts. One counts only if another exchange was recorded since the attempt before it.
    attempts: int = 0
    until: float = 0.0


@dataclass
class Backlog:
    """Exchanges that one process still has to record; use only from its event loop."""

    spool: Spool
    threads: ThreadPoolExecutor
    # By lane: how many exchanges wait here or are about to be added.
    waiting: Counts[str] = field(default_factory=Counts)
    in_memory: deque[tuple[str, datetime, bytes]] = field(default_factory=deque)
    backoffs: dict[str, Backoff] = field(default_factory=dict)
    # How many exchanges have been recorded so far, directly or by replay.
    recorded_count: int = 0
    # The descriptor of the spool's lock file.
    lock_descriptor: int | None = None

    async def open(self) -> None:
        """Lock the spool and count what is in it. Raises SpoolInUse if another holds it."""
        self.lock_descriptor = await asyncio.to_thread(self.spool.claim)
        await asyncio.to_thread(self.spool.open)
        self.waiting.update(map(lane_in, await asyncio.to_thread(self.spool.in_order)))

    async def add(self, lane: str, received_at: datetime, data: bytes) -> None:
        """Spool an exchange of a held lane; else keep it in memory, else log its loss."""
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
        """Spool what is in memory and release the lock, when the process ends."""
        while self.in_memory:
            self.add_at_shutdown(*self.in_memory.popleft())
        if self.lock_descriptor is not None:
            os.close(self.lock_descriptor)

    def add_at_shutdown(self, lane: str, received_at: datetime, data: bytes) -> None:
        """Spool an exchange when the process ends; if that fails, log that it is lost."""
        try:
            self.spool.add(data, lane=lane, received_at=received_at)
            EXCHANGES.labels("spooled").inc()
        except OSError as refusal:
            EXCHANGES.labels("lost").inc()
            logger.error("gateway_exchange_lost", reason=type(refusal).__name__)

    def hold(self, lane: str) -> None:
        """Make a lane wait for an exchange that is about to be added."""
        self.waiting[lane] += 1

    def release(self, lane: str) -> None:
        """End the hold of one exchange on its lane."""
        self.waiting[lane] -= 1
        if self.waiting[lane] <= 0:
            del self.waiting[lane]

    async def replay(self) -> float | None:
        """Record waiting exchanges, oldest first; return seconds until the next retry.

        Returns None if no retry is due. Raises while the database or the disk is unavailable.
        """
        # Lanes to be retried later, and when.
        lanes: dict[str, float] = {}
        for path in await asyncio.to_thread(self.spool.in_order):
            lane, backoff = lane_in(path), self.backoffs.get(path.name)
            if backoff is not None and backoff.until > time.monotonic():
                lanes.setdefault(lane, backoff.until)
            if lane in lanes:
                continue
            is_recorded = await self.run_in_thread(partial(_replay_file, path))
            if is_recorded is None and not self._is_given_up(path):
                lanes[lane] = self.backoffs[path.name].until
                continue
            await asyncio.to_thread(self.spool.remove if is_recorded else self.spool.reject, path)
            self._done(lane, is_recorded=bool(is_recorded))
            self.backoffs.pop(path.name, None)
        for lane, received_at, data in list(self.in_memory):
            is_recorded = None if lane in lanes else await self.run_in_thread(partial(_replay_data, data))
            if is_recorded is None:
                lanes.setdefault(lane, time.monotonic() + BACKOFF_SECONDS[0])
                continue
            self.in_memory.remove((lane, received_at, data))
            self._done(lane, is_recorded=is_recorded)
        return max(0.1, min(lanes.values()) - time.monotonic()) if lanes else None

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Run the work in a thread, and close the thread's database connection after it."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, closing_connections, work)

    def _done(self, lane: str, *, is_recorded: bool) -> None:
        self.recorded_count += is_recorded
        EXCHANGES.labels("replayed" if is_recorded else "rejected").inc()
        self.release(lane)

    def _is_given_up(self, path: Path) -> bool:
        """Schedule another attempt of an exchange; True if it has failed too often."""
        backoff = self.backoffs.setdefault(path.name, Backoff(recorded_count=self.recorded_count))
        # If no other exchange was recorded since, the database may be at fault: the attempt does not count.
        backoff.attempts += self.recorded_count > backoff.recorded_count
        backoff.recorded_count = self.recorded_count
        backoff.until = time.monotonic() + min(BACKOFF_SECONDS[0] * 2**backoff.attempts, BACKOFF_SECONDS[1])
        if backoff.attempts >= MOST_ATTEMPTS:
            logger.error("gateway_exchange_rejected", code="timeout")
        return backoff.attempts >= MOST_ATTEMPTS


def build_recorder(exchange: Exchange) -> Recorder:
    """Return the recorder of an exchange's workspace. Raises if its key is not valid."""
    caller = caller_of_hash(exchange.key_hash)
    caller.require(KeyScope.WRITE)
    return Recorder.from_settings(caller.scope)


def _replay_file(path: Path) -> bool | None:
    try:
        data = path.read_bytes()
    except OSError as error:
        # For example, the file belongs to another user. It is retried later, and other lanes go on.
        logger.error("gateway_spool_unreadable", reason=type(error).__name__)
        return None
    return _replay_data(data)


def _replay_data(data: bytes) -> bool | None:
    """Record an exchange; True if done, None to retry, False if it never can be."""
    try:
        exchange, outcome = parse_exchange(data)
        recorder = build_recorder(exchange)
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

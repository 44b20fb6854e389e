"""Record exchanges in order while they are forwarded, or later from a backlog.

An exchange that cannot be recorded now goes to the backlog. While the database is down, all exchanges go there. If only
one exchange timed out, only the later ones of its lane (a key's session) follow it there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar
from weakref import WeakValueDictionary

import structlog
from django.db import OperationalError, connection

from conversations.errors import Forbidden, Invalid, Unauthenticated
from lcmsite.catalogue.problems import problem_of
from lcmsite.gateway.recording.backlog import Backlog, build_recorder
from lcmsite.gateway.recording.exchange import Exchange, Outcome, serialize_exchange
from lcmsite.gateway.recording.exchange_spool import Spool
from lcmsite.gateway.recording.recorder import Recorded
from lcmsite.ops.metrics.counters import EXCHANGES
from lcmsite.ops.outages import is_outage

logger = structlog.get_logger(__name__)

T = TypeVar("T")
THREADS = 4
# Timeout for recording a request or an answer; the exchange then goes to the backlog.
DATABASE_TIMEOUT_SECONDS = 6.0
# While the database is down: the first and the longest delay before a retry, in seconds; each is twice the one before.
RETRY_PAUSES = (0.25, 4.0)
# Parsing holds the interpreter's lock, so recording starts when the answer begins, or after this delay at the latest.
HEAD_START_SECONDS = 0.03
SECONDS_TO_FINISH = 8.0


@dataclass
class Pending:
    """A request that is being recorded while it is forwarded."""

    exchange: Exchange
    lane: str
    lock: asyncio.Lock
    task: asyncio.Task[Recorded | None]
    # Set when the client has the beginning of the answer, or when the request waits for its recording.
    is_forwarded: asyncio.Event = field(default_factory=asyncio.Event)
    has_begun: bool = False
    # Why the request is not recorded yet, for the header x-lcm-status.
    reason: str = ""
    # Whether no later attempt can record it, either.
    is_unrecordable: bool = False
    # Whether its lane waits for it in the backlog.
    holds_lane: bool = False
    is_abandoned: bool = False

    @property
    def recorded(self) -> Recorded | None:
        """The recorded request; None before that, or if it failed."""
        return self.task.result() if self.task.done() and not self.task.cancelled() else None


@dataclass
class Recordings:
    """Records what one process forwards, each session in its order."""

    backlog: Backlog
    is_down: bool = False
    lanes: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    # Exchanges whose answer has ended, until they are recorded or in the backlog.
    ending: dict[asyncio.Task[None], tuple[Pending, Callable[[], Outcome]]] = field(default_factory=dict)
    replaying: asyncio.Task[None] | None = None

    @classmethod
    def in_directory(cls, directory: Path, *, most_bytes: int) -> Self:
        """Create recordings with their spool below the data directory."""
        threads = ThreadPoolExecutor(THREADS, thread_name_prefix="record")
        return cls(Backlog(Spool.below(directory, most_bytes=most_bytes), threads))

    async def start(self) -> None:
        """Lock the spool, and replay it in the background until `stop`."""
        await self.backlog.open()
        self.wake.set()
        self.replaying = asyncio.create_task(self._replay())

    async def stop(self) -> None:
        """Finish the recordings under way; spool those that cannot be finished."""
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=SECONDS_TO_FINISH)
        if self.replaying is not None:
            self.replaying.cancel()
        for task, (pending, outcome_of) in list(self.ending.items()):
            task.cancel()
            exchange = pending.exchange
            self.backlog.add_at_shutdown(pending.lane, exchange.received_at, serialize_exchange(exchange, outcome_of()))
        self.backlog.close()
        self.backlog.threads.shutdown(wait=False, cancel_futures=True)

    def begin(self, exchange: Exchange, *, is_awaited: bool = False) -> Pending:
        """Start to record a request: when its answer begins, or after a short delay.

        With `is_awaited`, it starts at once, even if the lane has a backlog, and finds the seqs of all messages.
        """
        lane = exchange.lane
        lock = self.lanes.setdefault(lane, asyncio.Lock())

        def record() -> Recorded:
            return build_recorder(exchange).record_request(exchange, with_seqs=is_awaited)

        async def record_when_forwarded() -> Recorded | None:
            if self.is_down:
                pending.reason = "database"
                return None
            latest_start = asyncio.get_running_loop().time() + HEAD_START_SECONDS
            async with lock:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(latest_start):
                        await pending.is_forwarded.wait()
                pending.has_begun = True
                if self.backlog.waiting[lane] and not is_awaited:
                    pending.reason = "slow"
                    return None
                return await self._attempt(record, pending)

        pending = Pending(exchange, lane, lock, self._spawn(record_when_forwarded()))
        if is_awaited:
            pending.is_forwarded.set()
        return pending

    def end(self, pending: Pending, outcome_of: Callable[[], Outcome]) -> asyncio.Task[None]:
        """Record the outcome of a request, or add the exchange to the backlog."""
        pending.is_forwarded.set()
        task = self._spawn(self._end(pending, outcome_of))
        self.ending[task] = (pending, outcome_of)
        task.add_done_callback(lambda done: self.ending.pop(done, None))
        return task

    def abandon(self, pending: Pending) -> None:
        """Give up a request that will not be forwarded, and release its lane."""
        pending.is_abandoned = True
        if pending.holds_lane:
            self.backlog.release(pending.lane)

    async def _end(self, pending: Pending, outcome_of: Callable[[], Outcome]) -> None:
        # The lane's next request has this answer in its history, so it waits for this lock.
        async with pending.lock:
            # Run it in a thread, because it parses the answer, which may be large.
            outcome = await asyncio.to_thread(outcome_of)
            is_recorded = await self._record_answer(pending, outcome)
        if is_recorded:
            EXCHANGES.labels("recorded").inc()
            self.backlog.recorded_count += 1
            return
        if pending.is_unrecordable:
            EXCHANGES.labels("passed").inc()
            return
        self._hold(pending)
        data = await asyncio.to_thread(serialize_exchange, pending.exchange, outcome)
        await self.backlog.add(pending.lane, pending.exchange.received_at, data)
        self.wake.set()

    async def _record_answer(self, pending: Pending, outcome: Outcome) -> bool:
        recorded = await pending.task
        if recorded is None:
            return False

        def record() -> bool:
            build_recorder(pending.exchange).record_answer(pending.exchange, recorded, outcome)
            return True

        return await self._attempt(record, pending) is True

    async def _attempt(self, work: Callable[[], T], pending: Pending) -> T | None:
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT_SECONDS):
                return await self.backlog.run_in_thread(work)
        except TimeoutError:
            pending.reason = "slow"
        except Exception as error:
            problem = problem_of(error)
            if is_outage(error):
                self.is_down = True
                self.wake.set()
            pending.reason = "database" if problem.retryable else problem.code
            pending.is_unrecordable = isinstance(error, Invalid | Forbidden | Unauthenticated)
            if not problem.retryable:
                is_expected = pending.is_unrecordable
                logger.log(
                    logging.WARNING if is_expected else logging.ERROR,
                    "gateway_not_recorded",
                    code=problem.code,
                    exc_info=not is_expected,
                )
        if not pending.is_unrecordable:
            # Hold the lane now, before its later exchanges are recorded.
            self._hold(pending)
        return None

    def _hold(self, pending: Pending) -> None:
        if not pending.holds_lane and not pending.is_abandoned:
            pending.holds_lane = True
            self.backlog.hold(pending.lane)

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def _replay(self) -> None:
        """Replay the backlog whenever it has work, and detect that the database is back."""
        pause = RETRY_PAUSES[0]
        due: float | None = None
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wake.wait(), due)
            self.wake.clear()
            try:
                due = await self.backlog.replay()
                if self.is_down:
                    # Check the database before exchanges are sent to it again.
                    await self.backlog.run_in_thread(_check_database)
            except Exception as error:
                # The database or the disk is unavailable: try again after a pause.
                logger.info("gateway_replay_waits", reason=type(error).__name__)
                self.wake.set()
                await asyncio.sleep(pause)
                pause = min(2 * pause, RETRY_PAUSES[1])
                continue
            pause = RETRY_PAUSES[0]
            if not self.wake.is_set():
                self.is_down = False


def _check_database() -> None:
    # A connection of the pool may be broken.
    connection.ensure_connection()
    if not connection.is_usable():
        raise OperationalError

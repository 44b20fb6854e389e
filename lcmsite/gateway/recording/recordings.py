"""Record exchanges in order, later if need be, while they are forwarded.

What the database does not take now goes into the spool, from which it is replayed in order; where the disk takes
nothing either, a little is kept in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import structlog
from django.db import connections
from prometheus_client import Counter

from conversations.errors import Forbidden, Invalid, Unauthenticated, Unavailable
from lcmsite.access.keys import caller_of_hash
from lcmsite.catalogue.problems import problem_of
from lcmsite.gateway.recording.exchange import Exchange, Outcome, parsed, serialized
from lcmsite.gateway.recording.exchange_spool import Spool
from lcmsite.gateway.recording.recorder import Recorded, Recorder
from lcmsite.types import KeyScope

logger = structlog.get_logger(__name__)

T = TypeVar("T")
THREADS = 4
# An exchange waits so long for the database when its answer has ended; then it is spooled.
PATIENCE_SECONDS = 6.0
# While the database is down, one attempt is made after so long, then after twice as long.
PAUSES = (0.25, 4.0)
# A request is sent on before it is read, as both need the interpreter's lock; a slow vendor is not waited for.
HEAD_START_SECONDS = 0.03
# Kept in memory where neither database nor disk takes anything.
MOST_IN_MEMORY = 64 * 1024**2
SECONDS_TO_FINISH = 8.0

EXCHANGES = Counter("lcm_gateway_exchanges_total", "Requests through the gateway, by what became of them.", ["outcome"])
for _outcome in ("recorded", "spooled", "replayed", "rejected", "lost", "passed"):
    EXCHANGES.labels(_outcome)


@dataclass
class Pending:
    """A request that is being recorded while it is forwarded."""

    exchange: Exchange
    lane: asyncio.Lock
    task: asyncio.Task[Recorded | None]
    # Set when the client has the beginning of the answer, or waits for the recording.
    is_forwarded: asyncio.Event = field(default_factory=asyncio.Event)
    has_begun: bool = False
    # Why it is not recorded yet, as the header says it.
    reason: str = ""
    # Whether no later attempt can record it either.
    is_unreadable: bool = False

    @property
    def recorded(self) -> Recorded | None:
        """The request as it was recorded, if it was already."""
        return self.task.result() if self.task.done() and not self.task.cancelled() else None


@dataclass
class Recordings:
    """Records what one process forwards, each session in its order."""

    spool: Spool
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(THREADS, thread_name_prefix="record")
    )
    is_down: bool = False
    unspooled: deque[bytes] = field(default_factory=deque)
    lanes: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    replaying: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to replay what is in the spool, and go on until `stop`."""
        self.is_down = await asyncio.to_thread(self.spool.oldest) is not None
        self.wake.set()
        self.replaying = asyncio.create_task(self._replay())

    async def stop(self) -> None:
        """Finish what is under way, and spool what cannot be finished."""
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=SECONDS_TO_FINISH)
        if self.replaying is not None:
            self.replaying.cancel()
        self.threads.shutdown(wait=False, cancel_futures=True)

    def begin(self, exchange: Exchange, *, lane: str, is_awaited: bool) -> Pending:
        """Start to record a request: at once if that `is_awaited`, else in a moment."""
        lock = self.lanes.get(lane)
        if lock is None:
            lock = self.lanes[lane] = asyncio.Lock()

        def record() -> Recorded:
            return _recorder(exchange).record_request(exchange, with_seqs=is_awaited)

        async def recorded() -> Recorded | None:
            if self.is_down:
                pending.reason = "database"
                return None
            async with lock:
                with suppress(TimeoutError):
                    await asyncio.wait_for(pending.is_forwarded.wait(), HEAD_START_SECONDS)
                pending.has_begun = True
                return await self._attempt(record, pending)

        pending = Pending(exchange, lock, self._spawn(recorded()))
        if is_awaited:
            pending.is_forwarded.set()
        return pending

    def end(self, pending: Pending, outcome: Outcome) -> asyncio.Task[None]:
        """Record what became of a request, or spool the exchange."""
        pending.is_forwarded.set()
        return self._spawn(self._end(pending, outcome))

    async def _end(self, pending: Pending, outcome: Outcome) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                if await self._is_recorded(pending, outcome):
                    EXCHANGES.labels("recorded").inc()
                    return
        except TimeoutError:
            self._mark_down()
        if pending.is_unreadable:
            EXCHANGES.labels("passed").inc()
            return
        await self._keep(serialized(pending.exchange, outcome))

    async def _is_recorded(self, pending: Pending, outcome: Outcome) -> bool:
        recorded = await pending.task
        if recorded is None:
            return False

        def record() -> bool:
            _recorder(pending.exchange).record_answer(pending.exchange, recorded, outcome)
            return True

        async with pending.lane:
            return await self._attempt(record, pending) is True

    async def _attempt(self, work: Callable[[], T], pending: Pending) -> T | None:
        try:
            return await self.in_thread(work)
        except asyncio.CancelledError:
            self._mark_down()
            pending.reason = "slow"
            raise
        except Exception as error:
            problem = problem_of(error)
            pending.reason = "database" if problem.retryable else problem.code
            if problem.retryable:
                self._mark_down()
            pending.is_unreadable = isinstance(error, Invalid | Forbidden | Unauthenticated)
            if not problem.retryable:
                known = pending.is_unreadable
                logger.log(
                    logging.WARNING if known else logging.ERROR,
                    "gateway_not_recorded",
                    code=problem.code,
                    exc_info=not known,
                )
            return None

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run the work in a thread, without a database connection left in it."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, _tidily, work)

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    # The spool

    async def _keep(self, data: bytes) -> None:
        try:
            await asyncio.to_thread(self.spool.add, data)
            EXCHANGES.labels("spooled").inc()
        except OSError as refusal:
            kept = sum(map(len, self.unspooled))
            if kept + len(data) > MOST_IN_MEMORY:
                EXCHANGES.labels("lost").inc()
                logger.error("gateway_exchange_lost", reason=type(refusal).__name__)
                return
            self.unspooled.append(data)
            logger.warning("gateway_spool_refused", reason=type(refusal).__name__, kept_in_memory=len(self.unspooled))
        self._mark_down()

    def _mark_down(self) -> None:
        """Spool what comes, until the spool is empty and the database answers."""
        self.is_down = True
        self.wake.set()

    async def _replay(self) -> None:
        """Record what was spooled, oldest first, whenever there is some."""
        pause = PAUSES[0]
        while True:
            await self.wake.wait()
            self.wake.clear()
            try:
                while await self._replay_one():
                    pause = PAUSES[0]
            except Exception as error:
                # The database, or the disk: both may come back.
                logger.info("gateway_replay_waits", reason=type(error).__name__)
                self.wake.set()
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSES[1])
            if not self.wake.is_set():
                self.is_down = False

    async def _replay_one(self) -> bool:
        path = await asyncio.to_thread(self.spool.oldest)
        if path is not None:
            if await self.in_thread(lambda: _replayed(path.read_bytes())):
                await asyncio.to_thread(path.unlink)
            else:
                await asyncio.to_thread(self.spool.reject, path)
            return True
        if self.unspooled:
            data = self.unspooled[0]
            await self.in_thread(lambda: _replayed(data))
            self.unspooled.popleft()
            return True
        # With nothing left, the database must answer before exchanges go to it again.
        if self.is_down:
            await self.in_thread(_answers)
        return False


def _replayed(data: bytes) -> bool:
    """Record an exchange; whether it could be. Raises while the database is down."""
    try:
        exchange, outcome = parsed(data)
        recorder = _recorder(exchange)
        recorder.record_answer(exchange, recorder.record_request(exchange), outcome)
    except Exception as error:
        problem = problem_of(error)
        if problem.retryable:
            raise
        EXCHANGES.labels("rejected").inc()
        logger.error("gateway_exchange_rejected", code=problem.code, exc_info=error)
        return False
    EXCHANGES.labels("replayed").inc()
    return True


def _recorder(exchange: Exchange) -> Recorder:
    caller = caller_of_hash(exchange.key_hash)
    caller.require(KeyScope.WRITE)
    return Recorder.from_settings(caller.scope)


def _answers() -> None:
    connections["default"].ensure_connection()


def _tidily(work: Callable[[], T]) -> T:
    try:
        return work()
    finally:
        connections.close_all()


def spool_in(directory: Path, *, most_bytes: int) -> Spool:
    return Spool(directory / "gateway" / "spool", most_bytes)


def unavailable(reason: str) -> Unavailable:
    """The refusal of a request that could not be recorded and must be."""
    return Unavailable(f"LCM could not record this request ({reason}), and was to forward nothing unrecorded.")

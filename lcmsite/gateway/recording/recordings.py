"""Record exchanges in order, later if need be, while they are forwarded.

What the database does not take now goes into the backlog. Where it is away, so do all that follow until it answers;
where it only takes too long over one exchange, those of the same session.
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

from conversations.errors import Forbidden, Invalid, Unauthenticated, Unavailable
from lcmsite.catalogue.problems import problem_of
from lcmsite.gateway.recording.backlog import Backlog, recorder_of
from lcmsite.gateway.recording.exchange import Exchange, Outcome, serialized
from lcmsite.gateway.recording.exchange_spool import Spool
from lcmsite.gateway.recording.recorder import Recorded
from lcmsite.ops.metrics.counters import EXCHANGES
from lcmsite.ops.outages import is_outage

logger = structlog.get_logger(__name__)

T = TypeVar("T")
THREADS = 4
# After so long, the recording of a request or an answer is given up, and the exchange is spooled.
DATABASE_TIMEOUT_SECONDS = 6.0
# While the database is down, one attempt is made after so long, then after twice as long.
PAUSES = (0.25, 4.0)
# Parsing holds the interpreter's lock, so recording starts when the answer begins, or after so long at the latest.
HEAD_START_SECONDS = 0.03
SECONDS_TO_FINISH = 8.0


@dataclass
class Pending:
    """A request that is being recorded while it is forwarded."""

    exchange: Exchange
    lane: str
    lock: asyncio.Lock
    task: asyncio.Task[Recorded | None]
    # Set when the client has the beginning of the answer, or waits for the recording.
    is_forwarded: asyncio.Event = field(default_factory=asyncio.Event)
    has_begun: bool = False
    # Why it is not recorded yet, as the header says it.
    reason: str = ""
    # Whether no later attempt can record it either.
    is_unreadable: bool = False
    # Whether its lane waits for it.
    is_held: bool = False
    is_abandoned: bool = False

    @property
    def recorded(self) -> Recorded | None:
        """The request as it was recorded, if it was already."""
        return self.task.result() if self.task.done() and not self.task.cancelled() else None


@dataclass
class Recordings:
    """Records what one process forwards, each session in its order."""

    backlog: Backlog
    is_down: bool = False
    lanes: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    # Exchanges whose answer has ended, until they are recorded or kept.
    ending: dict[asyncio.Task[None], tuple[Pending, Callable[[], Outcome]]] = field(default_factory=dict)
    replaying: asyncio.Task[None] | None = None

    @classmethod
    def in_directory(cls, directory: Path, *, most_bytes: int) -> Self:
        """Recordings whose spool is below the data directory."""
        threads = ThreadPoolExecutor(THREADS, thread_name_prefix="record")
        return cls(Backlog(Spool.below(directory, most_bytes=most_bytes), threads))

    async def start(self) -> None:
        """Begin to replay what is in the spool, and go on until `stop`."""
        await self.backlog.open()
        self.wake.set()
        self.replaying = asyncio.create_task(self._replay())

    async def stop(self) -> None:
        """Finish what is under way, and spool what cannot be finished."""
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=SECONDS_TO_FINISH)
        if self.replaying is not None:
            self.replaying.cancel()
        for task, (pending, ended) in list(self.ending.items()):
            task.cancel()
            exchange = pending.exchange
            self.backlog.keep_now(pending.lane, exchange.received_at, serialized(exchange, ended()))
        self.backlog.close()
        self.backlog.threads.shutdown(wait=False, cancel_futures=True)

    def begin(self, exchange: Exchange, *, is_awaited: bool = False) -> Pending:
        """Start to record a request: at once if that `is_awaited`, else in a moment.

        An awaited one has the seqs of all its messages, and does not stay behind what its lane waits for.
        """
        lane = exchange.lane
        lock = self.lanes.get(lane)
        if lock is None:
            lock = self.lanes[lane] = asyncio.Lock()

        def record() -> Recorded:
            return recorder_of(exchange).record_request(exchange, with_seqs=is_awaited)

        async def recorded() -> Recorded | None:
            if self.is_down:
                pending.reason = "database"
                return None
            forwarded_by = asyncio.get_running_loop().time() + HEAD_START_SECONDS
            async with lock:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(forwarded_by):
                        await pending.is_forwarded.wait()
                pending.has_begun = True
                if self.backlog.waiting[lane] and not is_awaited:
                    pending.reason = "slow"
                    return None
                return await self._attempt(record, pending)

        pending = Pending(exchange, lane, lock, self._spawn(recorded()))
        if is_awaited:
            pending.is_forwarded.set()
        return pending

    def end(self, pending: Pending, ended: Callable[[], Outcome]) -> asyncio.Task[None]:
        """Record what became of a request, or keep the exchange for later."""
        pending.is_forwarded.set()
        task = self._spawn(self._end(pending, ended))
        self.ending[task] = (pending, ended)
        task.add_done_callback(lambda done: self.ending.pop(done, None))
        return task

    def abandon(self, pending: Pending) -> None:
        """Give up a request that is not forwarded."""
        pending.is_abandoned = True
        if pending.is_held:
            self.backlog.release(pending.lane)

    async def _end(self, pending: Pending, ended: Callable[[], Outcome]) -> None:
        # Before a request that comes after it, and has this answer in its history.
        async with pending.lock:
            # Answers are large at times.
            outcome = await asyncio.to_thread(ended)
            is_recorded = await self._is_recorded(pending, outcome)
        if is_recorded:
            EXCHANGES.labels("recorded").inc()
            self.backlog.recorded += 1
            return
        if pending.is_unreadable:
            EXCHANGES.labels("passed").inc()
            return
        self._hold(pending)
        data = await asyncio.to_thread(serialized, pending.exchange, outcome)
        await self.backlog.keep(pending.lane, pending.exchange.received_at, data)
        self.wake.set()

    async def _is_recorded(self, pending: Pending, outcome: Outcome) -> bool:
        recorded = await pending.task
        if recorded is None:
            return False

        def record() -> bool:
            recorder_of(pending.exchange).record_answer(pending.exchange, recorded, outcome)
            return True

        return await self._attempt(record, pending) is True

    async def _attempt(self, work: Callable[[], T], pending: Pending) -> T | None:
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT_SECONDS):
                return await self.backlog.in_thread(work)
        except TimeoutError:
            pending.reason = "slow"
        except Exception as error:
            problem = problem_of(error)
            if is_outage(error):
                self.is_down = True
                self.wake.set()
            pending.reason = "database" if problem.retryable else problem.code
            pending.is_unreadable = isinstance(error, Invalid | Forbidden | Unauthenticated)
            if not problem.retryable:
                known = pending.is_unreadable
                logger.log(
                    logging.WARNING if known else logging.ERROR,
                    "gateway_not_recorded",
                    code=problem.code,
                    exc_info=not known,
                )
        if not pending.is_unreadable:
            # Before those behind it in its lane are recorded.
            self._hold(pending)
        return None

    def _hold(self, pending: Pending) -> None:
        if not pending.is_held and not pending.is_abandoned:
            pending.is_held = True
            self.backlog.hold(pending.lane)

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def _replay(self) -> None:
        """Record what waits whenever there is some, and find when the database is back."""
        pause = PAUSES[0]
        due: float | None = None
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wake.wait(), due)
            self.wake.clear()
            try:
                due = await self.backlog.replay()
                if self.is_down:
                    # Before exchanges go to it again.
                    await self.backlog.in_thread(_answers)
            except Exception as error:
                # The database, or the disk: both may come back.
                logger.info("gateway_replay_waits", reason=type(error).__name__)
                self.wake.set()
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSES[1])
                continue
            pause = PAUSES[0]
            if not self.wake.is_set():
                self.is_down = False


def _answers() -> None:
    # A connection of the pool may be broken.
    connection.ensure_connection()
    if not connection.is_usable():
        raise OperationalError


def unavailable(reason: str) -> Unavailable:
    """The refusal of a request that could not be recorded and must be."""
    return Unavailable(f"LCM could not record this request ({reason}), and was to forward nothing unrecorded.")

"""Claim, lease, fence and retry jobs that are rows of a table.

A job is a row, and the task queue only wakes a worker: a lost wake-up delays a job but never loses it. A table of such
rows has the columns `state`, `run_after`, `leased_until`, `finished_at`, `fence`, `attempts` and `last_error`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Generic, TypeVar

import structlog
from django.db import Error, connection, models, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Window
from django.db.models.expressions import Combinable
from django.db.models.functions import Now, RowNumber
from django.utils import timezone
from django.utils.module_loading import import_string

from conversations.errors import Conflict

logger = structlog.get_logger(__name__)

# A row whose workers fail or die repeatedly gets the state `failed` after this many claims, for a person to look at.
MAX_ATTEMPTS = 8
# The delay of a job whose lock another process holds.
BUSY_DELAY_SECONDS = 2.0
MOST_WOKEN_AT_ONCE = 1000
# How long no wake-up is tried after one has failed, because each attempt may wait for the queue's server.
SECONDS_WITHOUT_WAKING = 10
# How long finished rows are kept, and how many of the newest in each group are kept for ever: see `remove_finished`.
KEPT_DAYS = 30
KEPT_FOR_GOOD = 10
MOST_REMOVED_AT_ONCE = 1000

Row = TypeVar("Row", bound=models.Model)


class WorkState(StrEnum):
    """The state of a job; `done` and `failed` are final."""

    QUEUED = "queued"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"


class LeaseLost(Conflict):
    """The lease is over: another worker claimed the row, or its work has ended."""

    code = "lease_lost"


@dataclass(frozen=True)
class Lease(Generic[Row]):
    """One claim of a row; `fence` is the number of the claim, unique for the row.

    `row` has the values at the time of the claim.
    """

    queue: WorkQueue[Row]
    row: Row
    fence: int
    attempts: int
    seconds: float

    def renew(self, **values: Any) -> None:
        """Extend the lease and store these values; LeaseLost if it was lost.

        Inside a transaction it also locks the row until the commit, so that no other worker can claim it meanwhile.
        """
        self._update(leased_until=_from_now(self.seconds), **values)

    def finish(self, **values: Any) -> None:
        """Mark the work as done."""
        self.end(WorkState.DONE, **{"last_error": "", **values})

    def retry(self, *, error: str, delay_seconds: float | None = None) -> None:
        """Release the row after a failure; mark it failed after MAX_ATTEMPTS attempts."""
        if self.attempts >= MAX_ATTEMPTS:
            self.end(WorkState.FAILED, last_error=error)
            return
        delay = self.queue.backoff_seconds(self.attempts) if delay_seconds is None else delay_seconds
        self.release(attempts=self.attempts, error=error, delay_seconds=delay)

    def release(self, *, attempts: int = 0, error: str = "", delay_seconds: float = 0.0) -> None:
        """Let any worker claim the row after a delay."""
        # The row stays `leased`: another row for the same work may have been queued meanwhile, and only one of them may
        # be `queued`. A lease that ends after the delay has the same effect.
        then = _from_now(delay_seconds)
        self._update(leased_until=then, run_after=then, attempts=attempts, last_error=error)
        self.queue.wake(self.row.pk, delay_seconds)

    def end(self, state: WorkState, **values: Any) -> None:
        """Give the row its final state, and wake the rows that waited for its end."""
        self._update(state=state, finished_at=Now(), **values)
        if about := {name: getattr(self.row, name) for name in self.queue.about}:
            for row_id in self.queue.rows().filter(state=WorkState.QUEUED, **about).values_list("pk", flat=True):
                self.queue.wake(row_id, 0.0)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Release the row for a retry and re-raise any error; only log a lost lease."""
        try:
            yield
        except LeaseLost:
            logger.warning("lease_lost", work=type(self.row).__name__, row=self.row.pk)
        except Exception as failure:
            # The type and not the message of the error, which may quote users' text.
            self.retry(error=type(failure).__name__)
            raise

    @contextmanager
    def heartbeat(self) -> Iterator[None]:
        """Renew the lease from a thread while the block runs."""
        over = threading.Event()

        def keep() -> None:
            wait = usual = self.seconds / 3
            while not over.wait(wait):
                try:
                    self.renew()
                    wait = usual
                except LeaseLost:
                    break
                except Error:
                    connection.close()
                    # Soon again: if the server was restarted, every idle connection of the pool is broken, too.
                    wait = self.seconds / 60
            connection.close()

        thread = threading.Thread(target=keep, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _update(self, **values: Any) -> None:
        held = self.queue.rows().filter(pk=self.row.pk, fence=self.fence, state=WorkState.LEASED)
        if not held.update(**values):
            raise LeaseLost(f"{type(self.row).__name__} {self.row.pk} was given to another worker.")


@dataclass(frozen=True)
class WorkQueue(Generic[Row]):
    """A queue of jobs in one table, with its wake-ups and its backoff."""

    rows: Callable[[], QuerySet[Row]]
    # Wakes a worker: takes the row's id and a delay in seconds.
    wake: Callable[[int, float], None]
    first_backoff_seconds: float
    longest_backoff_seconds: float
    # The columns that say what a row is about. Of rows about the same thing, only one is leased at a time, and its end
    # wakes the next.
    about: tuple[str, ...] = ()
    lease_type: type[Lease[Any]] = Lease

    def due(self) -> QuerySet[Row]:
        """Return the rows that a worker may claim now, longest waiting first."""
        is_free = Q(state=WorkState.QUEUED) | Q(state=WorkState.LEASED, leased_until__lt=Now())
        due = self.rows().filter(is_free, run_after__lte=Now()).order_by("run_after", "pk")
        if not self.about:
            return due
        leased = self.rows().filter(state=WorkState.LEASED, run_after__lte=Now(), leased_until__gte=Now())
        same = Q(*((name, OuterRef(name)) for name in self.about), _connector=Q.OR)
        return due.filter(~Exists(leased.filter(same).exclude(pk=OuterRef("pk"))))

    def claim(self, *, lease_seconds: float, row_id: int | None = None) -> Lease[Row] | None:
        """Lease the next row that is due, or the given one; None if there is none.

        Also schedules a wake-up for the end of the lease, this one or that of another worker on the given row, so that
        the row is claimed again if that worker dies.
        """
        while (lease := self._claim(lease_seconds, row_id)) is not None:
            if lease.attempts <= MAX_ATTEMPTS:
                self.wake(lease.row.pk, lease_seconds + 1.0)
                return lease
            # Each worker of this row died before it could record an error.
            lease.retry(error="worker_lost")
        if row_id is not None:
            self._wake_at_end_of_lease(row_id)
        return None

    def _claim(self, lease_seconds: float, row_id: int | None) -> Lease[Row] | None:
        with transaction.atomic():
            due = self.due() if row_id is None else self.due().filter(pk=row_id)
            row: Any = due.select_for_update(skip_locked=True).first()
            if row is None:
                return None
            self.rows().filter(pk=row.pk).update(
                state=WorkState.LEASED,
                fence=F("fence") + 1,
                attempts=F("attempts") + 1,
                leased_until=_from_now(lease_seconds),
            )
            row.refresh_from_db()
        return self.lease_type(queue=self, row=row, fence=row.fence, attempts=row.attempts, seconds=lease_seconds)

    def _wake_at_end_of_lease(self, row_id: int) -> None:
        """Schedule a wake-up for the time at which another worker's lease ends."""
        leased = self.rows().filter(pk=row_id, state=WorkState.LEASED)
        ends_at: datetime | None = leased.values_list("leased_until", flat=True).first()
        if ends_at is not None:
            left = (ends_at - timezone.now()).total_seconds()
            self.wake(row_id, max(0.0, left) + 1.0)

    def wake_due(self) -> None:
        """Wake a worker for every row that is due, such as one whose wake-up was lost."""
        self.limit_waits()
        for row_id in self.due().values_list("pk", flat=True)[:MOST_WOKEN_AT_ONCE]:
            self.wake(row_id, 0.0)

    def limit_waits(self) -> None:
        """Shorten waits that are longer than any lease or backoff.

        They are from before the database's clock was set back.
        """
        furthest = _from_now(self.longest_backoff_seconds)
        for column in ("run_after", "leased_until"):
            late = self.rows().filter(state__in=(WorkState.QUEUED, WorkState.LEASED), **{f"{column}__gt": furthest})
            late.update(**{column: furthest})

    def remove_finished(self, *, of: Sequence[str]) -> int:
        """Remove rows that ended more than KEPT_DAYS ago; return how many.

        In each group of rows with equal columns `of`, the newest KEPT_FOR_GOOD stay: callers look at them before they
        request the same work again.
        """
        ended = self.rows().filter(state__in=(WorkState.DONE, WorkState.FAILED))
        place = Window(RowNumber(), partition_by=[F(column) for column in of], order_by=F("finished_at").desc())
        old = ended.filter(finished_at__lt=_from_now(-KEPT_DAYS * 86_400)).annotate(place=place)
        old = old.filter(place__gt=KEPT_FOR_GOOD)
        removed = 0
        while rows := list(old.values_list("pk", flat=True)[:MOST_REMOVED_AT_ONCE]):
            removed += self.rows().filter(pk__in=rows).delete()[0]
        return removed

    def backoff_seconds(self, attempts: int) -> float:
        """Return the delay before the next attempt, after this many failed attempts."""
        return min(self.longest_backoff_seconds, self.first_backoff_seconds * 2.0**attempts)


def no_wake_up(row_id: int, delay_seconds: float) -> None:
    """Do nothing for a single row: a worker is woken for all rows together."""


def _from_now(seconds: float) -> Combinable:
    """Return a time relative to the database's clock, which all workers share."""
    return Now() + timedelta(seconds=seconds)


def wake(task: str, *, delay_seconds: float, **given: Any) -> None:
    """Enqueue a task when the transaction is committed, to run after a delay.

    `task` is its dotted path, because tasks import the services that wake them; raises ImportError if there is none. If
    the task cannot be enqueued, this is only logged: the row is committed, and the room's periodic sweep wakes a worker
    later. Otherwise a committed append would look failed and be sent again.
    """
    transaction.on_commit(partial(_enqueue, import_string(task), given, delay_seconds))


_asleep_until = 0.0


def _enqueue(task: Any, given: dict[str, Any], delay_seconds: float) -> None:
    global _asleep_until
    if time.monotonic() < _asleep_until:
        return
    for is_last in (False, True):
        try:
            if delay_seconds > 0:
                task.schedule(kwargs=given, delay=delay_seconds)
            else:
                task(**given)
        except Exception as failure:
            # The queue keeps one connection; if its server was restarted, the second attempt opens a new one. After a
            # timeout it would only wait again; each client has a class of its own for timeouts.
            if is_last or type(failure).__name__ == "TimeoutError":
                _asleep_until = time.monotonic() + SECONDS_WITHOUT_WAKING
                logger.warning("wake_up_failed", **given, error=type(failure).__name__)
                return
        else:
            return

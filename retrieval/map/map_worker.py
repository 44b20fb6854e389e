"""Process map runs: claim items, call models, record the results.

A process runs at most one worker. The worker occupies one thread of the task queue, and calls models in threads of its
own. After a time slice it ends, so that other tasks can run, and a wake-up continues the work. The worker's main thread
reads and writes all rows of items, and renews the leases of items with a call in progress. Another thread finishes
runs, because a lease may end while the output of a large run is written.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.db import Error, InterfaceError, OperationalError, connection, transaction

from compaction.llm.configuration import ModelsPolicy
from compaction.llm.guards import callable_models
from compaction.llm.types import (
    BadAnswer,
    BreakerOpen,
    Denied,
    Misconfigured,
    ModelFailed,
    RateLimited,
    Reply,
    SpendExhausted,
    Unreachable,
)
from conversations import sql
from conversations.work.queue import LeaseLost
from retrieval.map.input_items import line_of
from retrieval.map.item_call import ItemCall
from retrieval.map.item_prompt import NotJson, refusal_of, value_in_answer
from retrieval.map.item_queue import (
    OPEN_STATES,
    STATEMENTS,
    ItemLease,
    claim_next,
    limit_waits,
    pause_run,
    resume_run,
    wake_workers,
)
from retrieval.map.models import MapRun
from retrieval.map.output_schema import SchemaCheck
from retrieval.map.run_output import try_to_finish
from retrieval.map.types import ItemErrorKind, PauseReason
from retrieval.policy import RetrievalPolicy

logger = structlog.get_logger(__name__)

# While the worker processes items, it looks for runs to finish at this interval.
_SECONDS_BETWEEN_ENDS = 2.0

# The interval of attempts to reach the database during an outage.
_SECONDS_BETWEEN_ATTEMPTS = 1.0
OUTAGES = (OperationalError, InterfaceError)
# The SQLSTATE of a read-only server: the embedded server becomes read-only when its disk is nearly full. And the
# SQLSTATE prefixes of other outages: broken connections, no disk space or memory left, shutdown and startup.
_READ_ONLY = "25006"
_STATES_OF_OUTAGES = ("08", "53", "57P")

# The calls in progress, and the calls whose results are not recorded yet.
Calls = dict[Future[Reply | ModelFailed], ItemLease]

_at_work = threading.Lock()

_PAUSES: dict[type[ModelFailed], PauseReason] = {
    BreakerOpen: PauseReason.BREAKER,
    Misconfigured: PauseReason.BREAKER,
    SpendExhausted: PauseReason.SPEND,
}


@dataclass
class MapWorker:
    """Processes items of all runs, taking the runs in turn."""

    policy: ModelsPolicy
    slice_seconds: float
    lease_seconds: float
    most_calls: int
    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")

    @classmethod
    def from_settings(cls) -> MapWorker:
        policy = RetrievalPolicy.from_settings()
        return cls(
            policy=ModelsPolicy.from_settings(),
            slice_seconds=policy.map_slice_seconds,
            lease_seconds=policy.map_lease_seconds,
            most_calls=policy.map_calls,
        )

    def work(self) -> None:
        """Process items until none is due or the time slice ends; wake the next worker.

        Does nothing if this process already runs a worker.
        """
        if not _at_work.acquire(blocking=False):
            return
        try:
            with ThreadPoolExecutor(self.most_calls + 1, thread_name_prefix="map") as threads:
                self._work(threads)
            self._finish_runs()
        finally:
            _at_work.release()
        # Only after the release: a worker that was woken before it has done nothing, although items may be due now.
        self._wake_next()

    def sweep(self) -> None:
        """Resume runs whose model is available again, finish runs, and wake a worker."""
        limit_waits()
        for run_id, is_paused in sql.rows(STATEMENTS["runs_to_look_at"]):
            if is_paused and self._model_is_back(run_id):
                resume_run(run_id, actor="system")
        self._finish_runs()
        self._wake_next()

    def _work(self, threads: ThreadPoolExecutor) -> None:
        until = time.monotonic() + self.slice_seconds
        calls: Calls = {}
        ends: Future[None] | None = None
        beat = looked = began = time.monotonic()
        # The time at which an outage of the database began. Results are kept for the duration of a lease.
        away_since: float | None = None
        try:
            while True:
                try:
                    self._claim(threads, calls, until, is_first=looked == began)
                    if not calls:
                        return
                    ended, _ = wait(calls, timeout=1.0, return_when=FIRST_COMPLETED)
                    self._record_ended(calls, ended)
                    if time.monotonic() - looked > _SECONDS_BETWEEN_ENDS and (ends is None or ends.done()):
                        looked = time.monotonic()
                        ends = threads.submit(self._finish_runs_beside)
                    away_since = None
                except Error as outage:
                    away_since = away_since or time.monotonic()
                    is_over = not calls or time.monotonic() - away_since > self.lease_seconds
                    if is_over or not (isinstance(outage, OUTAGES) or _is_outage(outage)):
                        raise
                    logger.warning("database_away", work="MapItem", error=type(outage).__name__)
                    connection.close()
                    time.sleep(_SECONDS_BETWEEN_ATTEMPTS)
                if time.monotonic() - beat > self.lease_seconds / 3:
                    beat = time.monotonic()
                    self._renew(calls)
        finally:
            for call in calls:
                call.cancel()

    def _claim(self, threads: ThreadPoolExecutor, calls: Calls, until: float, *, is_first: bool) -> None:
        """Claim items and start their calls, up to `most_calls` at once."""
        while time.monotonic() < until and len(calls) < self.most_calls:
            lease = claim_next(worker=self.name, lease_seconds=self.lease_seconds)
            if lease is None:
                return
            if not calls and is_first:
                # If this process dies, this wake-up reaches another worker when the leases have ended.
                wake_workers(self.slice_seconds + self.lease_seconds)
            calls[threads.submit(ItemCall.of(lease, self.policy).call)] = lease

    def _record_ended(self, calls: Calls, ended: Iterable[Future[Reply | ModelFailed]]) -> None:
        """Record the results of calls; keep them during a database outage."""
        for call in ended:
            try:
                self._record(calls[call], call.result())
            except Exception as failure:
                # A call also uses the database, for spending limits and breakers. If that failed, there is no result.
                if isinstance(failure, Error) and _is_outage(failure) and call.exception() is None:
                    raise
                # The item is claimed again when its lease has ended. The other items are not affected.
                logger.error("result_not_recorded", row=calls[call].row.pk, error=type(failure).__name__)
            del calls[call]

    def _renew(self, calls: Calls) -> None:
        for lease in calls.values():
            try:
                lease.renew()
            except LeaseLost:
                # The result of this call will be refused when it is recorded.
                continue
            except Error:
                # At the next heartbeat, the database may be available on a new connection.
                connection.close()
                return

    def _record(self, lease: ItemLease, result: Reply | ModelFailed) -> None:
        """Record the result of a call; if the lease was lost, record only its tokens."""
        try:
            if isinstance(result, Reply):
                self._record_reply(lease, result)
            else:
                self._record_failure(lease, result)
        except LeaseLost:
            logger.warning("lease_lost", work="MapItem", row=lease.row.pk)
            lease.count_late(result.usage)

    def _record_reply(self, lease: ItemLease, reply: Reply) -> None:
        try:
            value = value_in_answer(reply.text)
            errors = SchemaCheck(lease.row.run.output_schema).errors(value)
        except NotJson as wrong:
            value, errors = None, [str(wrong)]
        if not errors:
            lease.complete(line_of(value), actor=self.name, usage=reply.usage)
        else:
            lease.refuse(errors, refusal_of(reply.text, errors), actor=self.name, usage=reply.usage)

    def _record_failure(self, lease: ItemLease, failed: ModelFailed) -> None:
        sentence, usage = str(failed), failed.usage
        if reason := _PAUSES.get(type(failed)):
            self._pause(lease, reason)
        elif isinstance(failed, Unreachable | RateLimited | Denied):
            kind = ItemErrorKind.TIMEOUT if isinstance(failed, Unreachable) else ItemErrorKind.MODEL
            lease.back_off(kind, sentence, actor=self.name, usage=usage, at_least=failed.retry_after or 0.0)
        elif isinstance(failed, BadAnswer):
            # The answer was cut off or empty. Another attempt may succeed, but this one counts as an attempt.
            refusal = f"There was no usable answer: {failed.detail}."
            lease.refuse([sentence], refusal, actor=self.name, usage=usage)
        else:
            lease.give_up(ItemErrorKind.MODEL, sentence, actor=self.name, usage=usage)

    def _pause(self, lease: ItemLease, reason: PauseReason) -> None:
        """Pause the run because of its model; the item's attempt is not counted."""
        with transaction.atomic():
            run = MapRun.objects.select_for_update(no_key=True).get(pk=lease.row.run_id)
            lease.return_unused()
            if run.state in OPEN_STATES:
                pause_run(run, reason, actor=self.name)

    def _model_is_back(self, run_id: str) -> bool:
        model = MapRun.objects.values_list("model", flat=True).get(pk=run_id)
        return model in callable_models([model], policy=self.policy)

    def _finish_runs(self) -> None:
        """Finish the runs whose items have all ended."""
        for run_id, is_paused in sql.rows(STATEMENTS["runs_to_look_at"]):
            if not is_paused:
                try_to_finish(run_id, actor=self.name)

    def _finish_runs_beside(self) -> None:
        """Finish runs, in another thread; the end of the time slice retries failures."""
        try:
            self._finish_runs()
        finally:
            connection.close()

    def _wake_next(self) -> None:
        """Wake a worker now if items are due, otherwise when the next item is due."""
        if sql.first_row(STATEMENTS["next_run"], {"passed": "{}"}) is not None:
            wake_workers()
            return
        found: Any = sql.first_row(STATEMENTS["seconds_to_next"])
        if found is not None and found["seconds"] is not None:
            wake_workers(max(0.1, found["seconds"]))


def _is_outage(error: Error) -> bool:
    """Whether the error is an outage of the database, and not of one statement."""
    state = getattr(error.__cause__, "sqlstate", None)
    if state is None:
        # An error without an SQLSTATE did not come from the server: there was no response.
        return isinstance(error, OUTAGES)
    return state == _READ_ONLY or isinstance(error, OUTAGES) and state.startswith(_STATES_OF_OUTAGES)

"""Process map runs: claim items, call models, record the results.

A process runs one worker at a time. It takes one thread of the queue, calls models from threads of its own, and yields
to other tasks after a time slice; a wake-up continues the work. The worker's own thread reads and writes all rows of
items, and renews the leases of those with a call in progress. Runs are finished on another thread, as writing the
output of a large one may outlast a lease.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
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
from conversations.errors import LcmError
from conversations.work.queue import LeaseLost
from retrieval.map.input_items import line_of
from retrieval.map.item_call import ItemCall
from retrieval.map.item_prompt import NotJson, refusal_of, value_in_answer
from retrieval.map.item_queue import (
    OPEN_STATES,
    STATEMENTS,
    ItemLease,
    claim_next,
    count_spending,
    pause_run,
    resume_run,
    wake_workers,
)
from retrieval.map.models import MapRun
from retrieval.map.output_schema import SchemaCheck
from retrieval.map.run_output import finish_if_over
from retrieval.map.types import ItemErrorKind, PauseReason
from retrieval.policy import RetrievalPolicy

logger = structlog.get_logger(__name__)

# The most runs whose schema checks are cached.
_MOST_SCHEMAS = 100

# The time between checks for runs to finish, while others go on.
_SECONDS_BETWEEN_ENDS = 2.0

# Seconds between attempts to reach the database.
_SECONDS_BETWEEN_ATTEMPTS = 1.0
OUTAGES = (OperationalError, InterfaceError)
# The SQLSTATE of a read-only server, as LCM's own is when its disk is nearly full; SQLSTATE prefixes of other outages:
# broken connections, no disk or memory left, shutdown and startup.
_READ_ONLY = "25006"
_STATES_OF_OUTAGES = ("08", "53", "57P")

# The calls in progress, and those whose results are not recorded yet.
Calls = dict[Future[Reply | ModelFailed], ItemLease]

_at_work = threading.Lock()

_PAUSES: dict[type[ModelFailed], PauseReason] = {
    BreakerOpen: PauseReason.BREAKER,
    Misconfigured: PauseReason.BREAKER,
    SpendExhausted: PauseReason.SPEND,
}


@dataclass
class MapWorker:
    """Processes items of all runs in turn."""

    policy: ModelsPolicy
    slice_seconds: float
    lease_seconds: float
    most_calls: int
    clock: Callable[[], float] = time.monotonic
    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")
    _schemas: dict[str, SchemaCheck] = field(default_factory=dict, init=False)

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
        """Process items until none is due or the time slice is over; wake the next.

        Does nothing if this process runs a worker already.
        """
        if not _at_work.acquire(blocking=False):
            return
        try:
            with ThreadPoolExecutor(self.most_calls + 1, thread_name_prefix="map") as threads:
                self._work(threads)
            self._finish_runs()
        finally:
            _at_work.release()
        # After the release, as a worker that was woken before it did nothing, though items are due by now.
        self._wake_next()

    def sweep(self) -> None:
        """Resume runs whose model may be called again, and wake workers for all others."""
        for run_id, is_paused in sql.rows(STATEMENTS["runs_to_look_at"]):
            if is_paused and self._model_is_back(run_id):
                resume_run(run_id, actor="system")
        self._finish_runs()
        self._wake_next()

    def _work(self, threads: ThreadPoolExecutor) -> None:
        until = self.clock() + self.slice_seconds
        calls: Calls = {}
        ends: Future[None] | None = None
        beat = looked = began = self.clock()
        # When the database went away; results wait for it as long as a lease lasts.
        away_since: float | None = None
        try:
            while True:
                try:
                    self._claim(threads, calls, until, is_first=looked == began)
                    if not calls:
                        return
                    ended, _ = wait(calls, timeout=1.0, return_when=FIRST_COMPLETED)
                    self._record_ended(calls, ended)
                    if self.clock() - looked > _SECONDS_BETWEEN_ENDS and (ends is None or ends.done()):
                        looked = self.clock()
                        ends = threads.submit(self._finish_runs_beside)
                    away_since = None
                except Error as outage:
                    away_since = away_since or self.clock()
                    is_over = not calls or self.clock() - away_since > self.lease_seconds
                    if is_over or not (isinstance(outage, OUTAGES) or _is_outage(outage)):
                        raise
                    logger.warning("database_away", work="MapItem", error=type(outage).__name__)
                    connection.close()
                    time.sleep(_SECONDS_BETWEEN_ATTEMPTS)
                if self.clock() - beat > self.lease_seconds / 3:
                    beat = self.clock()
                    self._renew(calls)
        finally:
            for call in calls:
                call.cancel()

    def _claim(self, threads: ThreadPoolExecutor, calls: Calls, until: float, *, is_first: bool) -> None:
        """Claim items and start their calls, up to `most_calls` at once."""
        while self.clock() < until and len(calls) < self.most_calls:
            lease = claim_next(worker=self.name, lease_seconds=self.lease_seconds)
            if lease is None:
                return
            if not calls and is_first:
                # Should this process die, this wakes another worker when the leases have ended.
                wake_workers(self.slice_seconds + self.lease_seconds)
            calls[threads.submit(ItemCall.of(lease, self.policy).call)] = lease

    def _record_ended(self, calls: Calls, ended: Iterable[Future[Reply | ModelFailed]]) -> None:
        """Record the results of calls; during a database outage, keep them."""
        for call in ended:
            # A model's guards use the database, too: a call that failed there has no result.
            failure: BaseException | None = call.exception()
            if not isinstance(failure, Error):
                try:
                    self._record(calls[call], call.result())
                except Error as refusal:
                    if _is_outage(refusal):
                        raise
                    # Not an outage, so a second attempt would fail the same way.
                    failure = refusal
            if failure is not None:
                # The item is claimed again when its lease has ended; others go on.
                logger.error("result_not_recorded", row=calls[call].row.pk, error=type(failure).__name__)
            del calls[call]

    def _renew(self, calls: Calls) -> None:
        for lease in calls.values():
            try:
                lease.renew()
            except LeaseLost:
                # Recording its result will be refused.
                continue
            except Error:
                # The database may be back at the next beat, on a new connection.
                connection.close()
                return

    def _record(self, lease: ItemLease, result: Reply | ModelFailed) -> None:
        """Record the result of a call; if its lease was lost, only its tokens."""
        usage = result.usage
        tokens = {"tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out}
        try:
            if isinstance(result, Reply):
                self._record_reply(lease, result.text, tokens)
            else:
                self._record_failure(lease, result, tokens)
        except LeaseLost:
            logger.warning("lease_lost", work="MapItem", row=lease.row.pk)
            count_spending(lease.row.run_id, **tokens)

    def _record_reply(self, lease: ItemLease, answer: str, tokens: dict[str, int]) -> None:
        try:
            value = value_in_answer(answer)
            errors = self._check(lease.row.run).errors(value)
        except NotJson as wrong:
            value, errors = None, [str(wrong)]
        if not errors:
            lease.complete(line_of(value), actor=self.name, **tokens)
        else:
            self._refuse(lease, errors, refusal_of(answer, errors), tokens)

    def _record_failure(self, lease: ItemLease, failed: ModelFailed, tokens: dict[str, int]) -> None:
        sentence = str(failed)
        if reason := _PAUSES.get(type(failed)):
            self._pause(lease, reason)
        elif isinstance(failed, Unreachable | RateLimited | Denied):
            kind = ItemErrorKind.TIMEOUT if isinstance(failed, Unreachable) else ItemErrorKind.MODEL
            lease.back_off(
                kind, sentence, actor=self.name, at_least=failed.retry_after or 0.0, tokens_in=tokens["tokens_in"]
            )
        elif isinstance(failed, BadAnswer):
            # Cut off or empty: another attempt may do better, but counts against the limit.
            self._refuse(lease, [sentence], f"There was no usable answer: {failed.detail}.", tokens)
        else:
            lease.give_up(ItemErrorKind.MODEL, sentence, actor=self.name, **tokens)

    def _refuse(self, lease: ItemLease, errors: list[str], refusal: str, tokens: dict[str, int]) -> None:
        lease.refuse(errors, refusal, actor=self.name, most=lease.row.run.max_attempts, **tokens)

    def _pause(self, lease: ItemLease, reason: PauseReason) -> None:
        """Pause the run because of its model; the item loses no attempt."""
        with transaction.atomic():
            run = MapRun.objects.select_for_update(no_key=True).get(pk=lease.row.run_id)
            lease.return_unused()
            if run.state in OPEN_STATES:
                pause_run(run, reason, actor=self.name)

    def _check(self, run: MapRun) -> SchemaCheck:
        if len(self._schemas) > _MOST_SCHEMAS:
            self._schemas.clear()
        return self._schemas.setdefault(run.pk, SchemaCheck(run.output_schema))

    def _model_is_back(self, run_id: str) -> bool:
        model = MapRun.objects.values_list("model", flat=True).get(pk=run_id)
        return model in callable_models([model], policy=self.policy)

    def _finish_runs(self) -> None:
        """Finish the runs whose items have all ended."""
        for run_id, is_paused in sql.rows(STATEMENTS["runs_to_look_at"]):
            if is_paused:
                continue
            try:
                finish_if_over(run_id, actor=self.name)
            except LcmError as refusal:
                # File storage may work again at the next sweep; other runs do not wait for it.
                logger.error("map_run_not_finished", run_id=run_id, error=refusal.code)

    def _finish_runs_beside(self) -> None:
        """Finish runs on another thread; failures are retried when the slice ends."""
        try:
            self._finish_runs()
        finally:
            connection.close()

    def _wake_next(self) -> None:
        """Wake a worker now if items are due, or else when the next one will be."""
        if sql.first_row(STATEMENTS["next_run"], {"passed": "{}"}) is not None:
            wake_workers()
            return
        found: Any = sql.first_row(STATEMENTS["seconds_to_next"])
        if found is not None and found["seconds"] is not None:
            wake_workers(max(0.1, found["seconds"]))


def _is_outage(error: Error) -> bool:
    """Whether the error is a database outage, rather than a statement's timeout."""
    state = getattr(error.__cause__, "sqlstate", None)
    if state is None:
        # Without an SQLSTATE, the server did not answer.
        return isinstance(error, OUTAGES)
    return state == _READ_ONLY or isinstance(error, OUTAGES) and state.startswith(_STATES_OF_OUTAGES)

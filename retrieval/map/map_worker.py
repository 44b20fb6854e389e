"""Work on map runs: claim items, have models called, record what came back.

A process has one at a time. It takes one thread of the queue, calls models from threads of its own, and ends after a
while in favour of other tasks; a wake-up continues the work. The rows of items are read and written by the worker's own
thread, which also renews the leases of all items whose calls are under way. Runs are ended beside it, as
writing the output of a large one may outlast a lease.
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

# The runs whose schemas are kept ready.
_MOST_SCHEMAS = 100

# How often runs are ended while others go on.
_SECONDS_BETWEEN_ENDS = 2.0

# Seconds between attempts to reach the database.
_SECONDS_BETWEEN_ATTEMPTS = 1.0
OUTAGES = (OperationalError, InterfaceError)
# States, or their classes, in which the server takes nothing: broken connections, no disk or memory left, shutdown and
# start, and the one in which it only reads, as LCM's own server does when its disk is nearly full.
_READ_ONLY = "25006"
_STATES_OF_OUTAGES = ("08", "53", "57P")

# The calls under way, and those whose results are not recorded yet.
Calls = dict[Future[Reply | ModelFailed], ItemLease]

_at_work = threading.Lock()

_PAUSES: dict[type[ModelFailed], PauseReason] = {
    BreakerOpen: PauseReason.BREAKER,
    Misconfigured: PauseReason.BREAKER,
    SpendExhausted: PauseReason.SPEND,
}


@dataclass
class MapWorker:
    """Works on all runs in turn."""

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
        """Work on items until none is due or the slice is over; then wake the next.

        Does nothing where this process is at it already.
        """
        if not _at_work.acquire(blocking=False):
            return
        try:
            with ThreadPoolExecutor(self.most_calls + 1, thread_name_prefix="map") as threads:
                self._work(threads)
            self._finish_runs()
        finally:
            _at_work.release()
        # After the release: who was woken before it found the process at work, and what it came for is due by now.
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
        """Begin calls, as many as may be under way."""
        while self.clock() < until and len(calls) < self.most_calls:
            lease = claim_next(worker=self.name, lease_seconds=self.lease_seconds)
            if lease is None:
                return
            if not calls and is_first:
                # Should this process die, another goes on when its leases have ended.
                wake_workers(self.slice_seconds + self.lease_seconds)
            calls[threads.submit(ItemCall.of(lease, self.policy).carry_out)] = lease

    def _record_ended(self, calls: Calls, ended: Iterable[Future[Reply | ModelFailed]]) -> None:
        """Record what came of calls; while the database is away, they stay."""
        for call in ended:
            # The guards of a model need the database, too: such a call has no result.
            failure: BaseException | None = call.exception()
            if not isinstance(failure, Error):
                try:
                    self._record(calls[call], call.result())
                except Error as refusal:
                    if _is_outage(refusal):
                        raise
                    # It would be refused again.
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
                # Its end will be refused.
                continue
            except Error:
                # The database may be back at the next beat, on a new connection.
                connection.close()
                return

    def _record(self, lease: ItemLease, result: Reply | ModelFailed) -> None:
        """Record what came of a call; a lease that is lost only costs."""
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
            lease.put_off(
                kind, sentence, actor=self.name, at_least=failed.retry_after or 0.0, tokens_in=tokens["tokens_in"]
            )
        elif isinstance(failed, BadAnswer):
            # Cut off or empty: another attempt may do better, and must not be repeated for ever.
            self._refuse(lease, [sentence], f"There was no usable answer: {failed.detail}.", tokens)
        else:
            lease.give_up(ItemErrorKind.MODEL, sentence, actor=self.name, **tokens)

    def _refuse(self, lease: ItemLease, errors: list[str], refusal: str, tokens: dict[str, int]) -> None:
        lease.refuse(errors, refusal, actor=self.name, most=lease.row.run.max_attempts, **tokens)

    def _pause(self, lease: ItemLease, reason: PauseReason) -> None:
        """Pause the run for its model; the item was not tried."""
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
        """End the runs whose items have all ended."""
        for run_id, is_paused in sql.rows(STATEMENTS["runs_to_look_at"]):
            if is_paused:
                continue
            try:
                finish_if_over(run_id, actor=self.name)
            except LcmError as refusal:
                # The storage may be back at the next sweep; other runs are not to wait for it.
                logger.error("map_run_not_finished", run_id=run_id, error=refusal.code)

    def _finish_runs_beside(self) -> None:
        """End runs beside the calls; what fails is tried again when the slice ends."""
        try:
            self._finish_runs()
        finally:
            connection.close()

    def _wake_next(self) -> None:
        """Wake a worker for what is due, or for the moment when something will be."""
        if sql.first_row(STATEMENTS["next_run"], {"passed": "{}"}) is not None:
            wake_workers()
            return
        found: Any = sql.first_row(STATEMENTS["seconds_to_next"])
        if found is not None and found["seconds"] is not None:
            wake_workers(max(0.1, found["seconds"]))


def _is_outage(error: Error) -> bool:
    """Whether the database takes nothing now; a timeout of one statement is none."""
    state = getattr(error.__cause__, "sqlstate", None)
    if state is None:
        # Without a state there was no answer.
        return isinstance(error, OUTAGES)
    return state == _READ_ONLY or isinstance(error, OUTAGES) and state.startswith(_STATES_OF_OUTAGES)

"""Queue the items of map runs: claim them, taking the runs in turn, and end them.

Code that locks a run and its items must lock the run first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from compaction.llm.protocols import LONGEST_RETRY_AFTER_SECONDS
from compaction.llm.types import Usage
from conversations import sql
from conversations.content.lossless_values import storable
from conversations.store.pages import MOST_PAGE_BYTES
from conversations.store.withheld import is_quarantined
from conversations.work import queue
from conversations.work.queue import MAX_ATTEMPTS, Lease, WorkQueue, WorkState, no_wake_up
from retrieval.map.event_log import record_event
from retrieval.map.item_prompt import PLACE
from retrieval.map.models import MapItem, MapRun
from retrieval.map.types import ItemErrorKind, MapEventKind, MapKind, MapState, PauseReason

OPEN_STATES = (MapState.QUEUED, MapState.RUNNING)
NO_USAGE = Usage()
# An item fails after this many consecutive calls without an answer, because otherwise its run might never end.
MOST_FAULTS = 20
# The longest lease of an outside agent, in seconds.
LONGEST_LEASE = 24 * 3600

STATEMENTS = sql.load("retrieval/map/statements.sql")


def wake_workers(delay_seconds: float = 0.0) -> None:
    """Wake a worker for map runs after a delay."""
    queue.wake("retrieval.tasks.work_on_map_runs", delay_seconds=delay_seconds)


class ItemLease(Lease[MapItem]):
    """A claimed item. Each outcome is stored in one transaction that locks the run.

    All methods raise LeaseLost if another worker has claimed the item, or the run was cancelled.
    """

    def complete(self, output: str, *, actor: str, usage: Usage = NO_USAGE) -> None:
        """Store the output, which is JSON on one line, and record the event."""
        digest = hashlib.sha256(output.encode()).digest()
        with self.recording(usage):
            self.finish(output=output, output_hash=digest, error_kind=None, validation_errors="", **_added(usage))
            self.record(MapEventKind.COMPLETED, actor, output_hash=digest)

    def refuse(self, errors: list[str], refusal: str, *, actor: str, usage: Usage = NO_USAGE) -> None:
        """Store the errors for the next attempt; fail the item if this was the last."""
        error, refused = storable("; ".join(errors)), self.row.refused_answers + 1
        kept = {"refused_answers": refused, "validation_errors": storable(refusal)}
        if refused >= self.row.run.max_attempts:
            self.give_up(ItemErrorKind.VALIDATION, error, actor=actor, usage=usage, **kept)
            return
        with self.recording(usage):
            self._update(
                leased_until=Now(), run_after=Now(), attempts=0, faults=0, last_error=error,
                error_kind=ItemErrorKind.VALIDATION, **kept, **_added(usage),
            )  # fmt: skip
            self.record(MapEventKind.RELEASED, actor, details={"reason": "validation", "refused_answers": refused})

    def back_off(self, kind: ItemErrorKind, error: str, *, actor: str, usage: Usage, at_least: float = 0.0) -> None:
        """Back off after a call without an answer; after too many, fail the item."""
        faults = self.row.faults + 1
        if faults >= MOST_FAULTS:
            self.give_up(kind, error, actor=actor, usage=usage, faults=faults)
            return
        with self.recording(usage):
            self.renew(faults=faults, error_kind=kind, **_added(usage))
            delay = max(at_least, self.queue.backoff_seconds(faults - 1))
            self.release(error=error, delay_seconds=delay)

    def return_unused(self) -> None:
        """Release the item without counting an attempt, because no call was made."""
        self.release(attempts=max(0, self.attempts - 1), error=self.row.last_error)

    def count_late(self, usage: Usage) -> None:
        """Add the tokens of a call to the item and its run, although the lease was lost."""
        with self.recording(usage):
            MapItem.objects.filter(pk=self.row.pk).update(**_added(usage))

    def give_up(self, kind: ItemErrorKind, error: str, *, actor: str, usage: Usage = NO_USAGE, **values: Any) -> None:
        """Give the item its final state `failed`."""
        with self.recording(usage):
            self.end(WorkState.FAILED, error_kind=kind, last_error=error, actor=actor, **_added(usage), **values)

    def end(self, state: WorkState, **values: Any) -> None:
        actor = values.pop("actor", "system")
        if state is not WorkState.FAILED:
            super().end(state, **values)
            return
        with self.recording():
            # There is no error kind if the queue fails a row because its workers died repeatedly.
            kind = values.setdefault("error_kind", ItemErrorKind.LEASE_LOST)
            super().end(state, **values)
            self.record(MapEventKind.FAILED, actor, details={"kind": kind})

    def record(self, event: MapEventKind, actor: str, **values: Any) -> None:
        """Record an event of the item; its run must be locked."""
        item = self.row
        record_event(item.run, event, actor=actor, position=item.position, input_hash=bytes(item.input_hash), **values)

    @contextmanager
    def recording(self, usage: Usage = NO_USAGE) -> Iterator[None]:
        """Lock the run in a transaction, and add the tokens of a call to its spending."""
        with transaction.atomic(savepoint=False):
            MapRun.objects.select_for_update(no_key=True).only("run_id").get(pk=self.row.run_id)
            yield
            if usage != NO_USAGE:
                sql.execute(STATEMENTS["count_spending"], {"run_id": self.row.run_id, **vars(usage)})


def _added(usage: Usage) -> dict[str, Any]:
    """The columns of an item with the tokens of a call added."""
    return {name: F(name) + tokens for name, tokens in vars(usage).items()}


def queue_of(run_id: str) -> WorkQueue[MapItem]:
    """The work queue of one run's items."""
    return WorkQueue(
        rows=partial(MapItem.objects.filter, run_id=run_id),
        wake=no_wake_up,
        first_backoff_seconds=1.0,
        longest_backoff_seconds=300.0,
        lease_type=ItemLease,
    )


def limit_waits() -> None:
    """Shorten waits of items and leases; see `WorkQueue.limit_waits`."""
    for kind, longest in ((MapKind.LLM, LONGEST_RETRY_AFTER_SECONDS), (MapKind.AGENTIC, LONGEST_LEASE)):
        WorkQueue(partial(MapItem.objects.filter, run__kind=kind), no_wake_up, 1.0, longest).limit_waits()


def claim_next(*, worker: str, lease_seconds: float) -> ItemLease | None:
    """Lease the next due item for a language model; None if no item is due."""
    passed: list[str] = []
    while (found := sql.first_row(STATEMENTS["next_run"], {"passed": sql.texts(passed)})) is not None:
        leases = claim_of_run(run_id=found["run_id"], worker=worker, count=1, lease_seconds=lease_seconds)
        if leases:
            return leases[0]
        # Another worker has taken the last due item, or the run has just been paused.
        passed.append(found["run_id"])
    return None


@transaction.atomic
def claim_of_run(*, run_id: str, worker: str, count: int, lease_seconds: float) -> list[ItemLease]:
    """Lease up to `count` items of a run, within its concurrency and budget.

    The items with their prompts have at most MOST_PAGE_BYTES bytes; only a single item may have more. If the budget is
    spent or the input file is quarantined, the run is paused, and no items are returned.
    """
    run = MapRun.objects.select_for_update(no_key=True).get(pk=run_id)
    if run.state not in OPEN_STATES:
        return []
    if run.budget_tokens is not None and run.spent_in + run.spent_out >= run.budget_tokens:
        pause_run(run, PauseReason.BUDGET, actor="system")
        return []
    if is_quarantined(run.input_file_id):
        # The items are copies of text in the file.
        pause_run(run, PauseReason.QUARANTINE, actor="system")
        return []
    [(at_work,)] = sql.rows(STATEMENTS["items_at_work"], {"run_id": run_id})
    leases: list[ItemLease] = []
    room = MOST_PAGE_BYTES
    while (free := min(count, run.concurrency - at_work) - len(leases)) > 0:
        values = {
            "run_id": run_id,
            "worker": worker,
            "seconds": lease_seconds,
            "most": free,
            "prompt_bytes": len(run.prompt.encode()),
            "copies": run.prompt.count(PLACE),
            "most_bytes": room,
            "needs_one": not leases,
        }
        found: list[Any] = list(MapItem.objects.raw(STATEMENTS["claim_items"], values))
        if not found:
            break
        for row in sorted(found, key=lambda row: (row.run_after, row.pk)):
            row.run = run
            lease = lease_of(row, lease_seconds)
            if lease.attempts <= MAX_ATTEMPTS:
                leases.append(lease)
                room -= row.bytes
            else:
                # Every worker that claimed this item died before it could record an error.
                lease.retry(error="worker_lost")
    if leases:
        MapRun.objects.filter(pk=run_id).update(
            state=MapState.RUNNING, started_at=Coalesce(F("started_at"), Now()), last_claim_at=Now()
        )
    return leases


def lease_of(item: MapItem, seconds: float) -> ItemLease:
    """The lease of a claimed item, as its row was read."""
    return ItemLease(queue=queue_of(item.run_id), row=item, fence=item.fence, attempts=item.attempts, seconds=seconds)


def pause_run(run: MapRun, reason: PauseReason, *, actor: str) -> None:
    """Pause an open run, whose row the caller has locked; claimed items end normally."""
    MapRun.objects.filter(pk=run.pk).update(state=MapState.PAUSED, pause_reason=reason)
    record_event(run, MapEventKind.PAUSED, actor=actor, details={"reason": reason.value})


@transaction.atomic
def resume_run(run_id: str, *, actor: str) -> None:
    """Resume a paused run; its items in backoff are due at once."""
    run = MapRun.objects.select_for_update(no_key=True).get(pk=run_id)
    if run.state != MapState.PAUSED:
        return
    state = MapState.QUEUED if run.started_at is None else MapState.RUNNING
    MapRun.objects.filter(pk=run_id).update(state=state, pause_reason=PauseReason.NONE)
    sql.execute(STATEMENTS["end_backoff"], {"run_id": run_id})
    record_event(run, MapEventKind.RESUMED, actor=actor, details={"from": run.pause_reason})
    wake_workers()

"""Rows with a lease and a fence: the same rules for the jobs of compaction and for the scans of integrity."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from django_huey import get_queue

from compaction.background import jobs
from compaction.history import history_jobs
from compaction.history.models import HistoryJob
from compaction.types import Reason
from conversations.scope import Scope
from conversations.sql import rows
from conversations.work.queue import MAX_ATTEMPTS, LeaseLost, WorkQueue, wake
from integrity import scans
from integrity.types import ScanMode
from lcmsite.connections import closing_connections
from lcmsite.queues import QUEUES
from tests.conversations.appending import at_once
from tests.factories import a_conversation, a_workspace
from tests.pasts import a_project


def a_job() -> int:
    return jobs.request(conversation_id=a_conversation("hello").conversation_id, reason=Reason.MANUAL)


def a_scan() -> int:
    conversation_id = a_conversation("hello").conversation_id
    return scans.request(Scope(a_workspace().pk), conversation_id=conversation_id, mode=ScanMode.FULL).pk


_CUT_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> ALL(%(queues)s)
"""

both = pytest.mark.parametrize(("queue", "a_row"), [(jobs.QUEUE, a_job), (scans.QUEUE, a_scan)], ids=["jobs", "scans"])


@pytest.fixture(autouse=True)
def wake_ups(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The delays of the wake-ups; no task queue is told of them."""
    delays: list[float] = []

    def hear(task: object, *, delay_seconds: float, **_: object) -> None:
        delays.append(delay_seconds)

    monkeypatch.setattr("conversations.work.queue.wake", hear)
    return delays


def end_the_lease(queue: WorkQueue[Any]) -> None:
    queue.rows().update(run_after=timezone.now(), leased_until=timezone.now() - timedelta(seconds=1))


@both
@pytest.mark.django_db
def test_a_row_whose_worker_died_goes_to_another_who_alone_may_write(queue: WorkQueue[Any], a_row, wake_ups):
    row_id = a_row()
    dead = queue.claim(lease_seconds=60, row_id=row_id)
    assert dead is not None and queue.claim(lease_seconds=60) is None
    assert wake_ups[-1] == 61.0

    end_the_lease(queue)
    heir = queue.claim(lease_seconds=60)

    assert heir is not None and heir.row.pk == row_id and heir.fence == dead.fence + 1
    for write in (dead.renew, dead.finish, dead.release, lambda: dead.retry(error="Late")):
        with pytest.raises(LeaseLost):
            write()
    heir.finish()
    with pytest.raises(LeaseLost):
        heir.renew()
    assert queue.rows().get().state == "done"


@both
@pytest.mark.django_db
def test_failures_are_retried_after_a_growing_backoff_and_set_aside_after_many(queue, a_row, wake_ups):
    a_row()
    for attempt in range(1, MAX_ATTEMPTS + 1):
        lease = queue.claim(lease_seconds=60)
        assert lease is not None and lease.attempts == attempt
        with pytest.raises(RuntimeError), lease.attempt():
            raise RuntimeError("with words that no row may hold")
        assert queue.claim(lease_seconds=60) is None
        end_the_lease(queue)

    row = queue.rows().get()
    backoffs = [delay for delay in wake_ups if delay not in (0.0, 61.0)]
    assert (row.state, row.last_error) == ("failed", "RuntimeError")
    assert backoffs == sorted(backoffs) and len(set(backoffs)) == MAX_ATTEMPTS - 1


@both
@pytest.mark.django_db
@pytest.mark.parametrize("gets_on", [False, True])
def test_a_row_that_kills_every_worker_is_set_aside_unless_each_has_got_on(queue, a_row, gets_on):
    row_id = a_row()
    for _ in range(MAX_ATTEMPTS):
        lease = queue.claim(lease_seconds=60)
        assert lease is not None
        if gets_on:
            lease.renew(attempts=1)
        end_the_lease(queue)

    claimed = queue.claim(lease_seconds=60, row_id=row_id)

    row = queue.rows().get()
    assert (claimed is not None) == gets_on
    assert (row.state, row.last_error) == (("leased", "") if gets_on else ("failed", "worker_lost"))


def an_ended_job(*, days: int, reason: str = "quiet", **about: int) -> HistoryJob:
    return HistoryJob.objects.create(
        workspace=a_workspace(),
        reason=reason,
        state="failed" if days % 3 else "done",
        finished_at=timezone.now() - timedelta(days=days, hours=1),
        **about,
    )


@pytest.mark.django_db
def test_rows_that_ended_long_ago_are_removed_but_for_the_newest_of_each_kind():
    one, other = ({"conversation_id": a_conversation("hello").conversation_id} for _ in range(2))
    project = {"project_id": a_project().pk}
    kept = [an_ended_job(days=days, **about) for about in (one, project) for days in range(40)]
    kept += [an_ended_job(days=90, reason="redo", **one), *(an_ended_job(days=days, **other) for days in range(28, 36))]
    kept.append(HistoryJob.objects.create(workspace=a_workspace(), reason="redo", **one))
    removed = [an_ended_job(days=days, **about) for about in (one, project) for days in range(40, 60)]

    assert history_jobs.QUEUE.remove_finished(of=("conversation", "project", "reason")) == len(removed)

    assert set(HistoryJob.objects.all()) == set(kept)


@both
@pytest.mark.django_db
def test_the_sweep_wakes_a_worker_for_what_a_lost_wake_up_left_behind(queue, a_row, wake_ups):
    a_row()
    queue.claim(lease_seconds=60)
    end_the_lease(queue)
    wake_ups.clear()

    queue.wake_due()

    assert wake_ups == [0.0]


@both
@pytest.mark.django_db
def test_after_the_clock_was_set_back_a_row_waits_no_longer_than_the_longest_backoff(queue, a_row):
    # From when the clock was a day ahead. The worker of the leased row is dead.
    queued, leased = a_row(), a_row()
    queue.claim(lease_seconds=60, row_id=leased)
    tomorrow, soon = (timezone.now() + timedelta(seconds=s) for s in (86_400, queue.longest_backoff_seconds + 60))
    queue.rows().update(run_after=tomorrow)
    queue.rows().filter(pk=leased).update(leased_until=tomorrow)

    queue.wake_due()

    assert queue.rows().get(pk=queued).run_after < soon
    assert queue.rows().get(pk=leased).run_after < soon
    assert queue.rows().get(pk=leased).leased_until < soon


@pytest.mark.sampled(1)
@both
def test_of_many_workers_at_once_each_row_is_claimed_by_one(committed_db, queue, a_row):
    row_ids = {a_row() for _ in range(5)}

    leases = at_once(lambda worker: queue.claim(lease_seconds=60), workers=8)

    claimed = [lease.row.pk for lease in leases if lease is not None]
    assert sorted(claimed) == sorted(row_ids)


def outlives_a_cut(queue, *, lease_seconds: float) -> bool:
    """Whether a heartbeat renews a lease after all pooled connections of its process were cut."""
    lease = queue.claim(lease_seconds=lease_seconds)
    assert lease is not None
    end = first_end = queue.rows().get().leased_until
    with lease.heartbeat():
        while end == first_end:
            threading.Event().wait(0.1)
            end = queue.rows().get().leased_until
        queues = [get_queue(name).storage.conn.info.backend_pid for name in QUEUES]
        assert rows(_CUT_OTHERS, {"queues": queues})
        while timezone.now() <= end:
            threading.Event().wait(0.1)
        claimed_meanwhile = queue.claim(lease_seconds=lease_seconds)
    connection.close()
    return claimed_meanwhile is None


@pytest.mark.sampled(1)
@both
def test_a_heartbeat_holds_the_row_for_longer_than_a_lease_though_its_connection_is_cut(committed_db, queue, a_row):
    connection.close()
    connection.close_pool()
    a_row()

    assert outlives_a_cut(queue, lease_seconds=6)


@pytest.mark.thorough
def test_a_heartbeat_finds_a_connection_among_many_that_were_cut(committed_db):
    a_job()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(closing_connections, [lambda: rows("SELECT pg_sleep(1)")] * 8))

    assert outlives_a_cut(jobs.QUEUE, lease_seconds=20)


def test_a_task_that_does_not_exist_is_refused_and_not_only_logged():
    with pytest.raises(ImportError):
        wake("compaction.tasks.compact_nothing", delay_seconds=0.0)

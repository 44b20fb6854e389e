"""Jobs in a database that commits: what is at work is left alone, for as long as it takes, and what waits is woken."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from unittest.mock import Mock

import psycopg
import pytest
import redis
import structlog
from django.db import connection, transaction
from django.utils import timezone
from django_huey import get_queue

from compaction.background import jobs
from compaction.background.worker import CompactionWorker
from compaction.models import CompactionJob, CompactionRun
from compaction.summarizing.extractive.extractive_summarizer import ExtractiveSummarizer
from compaction.summarizing.summarizer import SummaryDraft, SummaryRequest
from compaction.types import JobState, Reason
from conversations.models import ContextItem, Summary
from conversations.work.queue import MAX_ATTEMPTS
from integrity import scans
from tests.compacting import a_talk, another_session_compacts
from tests.factories import a_conversation, say
from tests.flows.processes import wait_until

LONG = "Something worth remembering was said about service-7 and port 5433. " * 10


def test_while_a_job_is_at_work_the_next_of_its_conversation_waits_and_is_woken_at_its_end(committed_db, wake_ups):
    conversation_id = a_conversation("hello").conversation_id
    jobs.request(conversation_id=conversation_id, reason=Reason.THRESHOLD)
    at_work = jobs.QUEUE.claim(lease_seconds=60)
    assert at_work is not None
    waiting = jobs.request(conversation_id=conversation_id, reason=Reason.THRESHOLD)

    assert jobs.QUEUE.claim(lease_seconds=60) is None
    assert jobs.request(conversation_id=conversation_id, reason=Reason.THRESHOLD) == waiting
    wake_ups.clear()
    at_work.finish()

    assert wake_ups == [(waiting, 0.0)]
    assert jobs.QUEUE.claim(lease_seconds=60, row_id=waiting) is not None


def test_a_job_that_rests_after_a_failure_keeps_no_new_wish_waiting(committed_db):
    conversation_id = a_conversation("hello").conversation_id
    jobs.request(conversation_id=conversation_id, reason=Reason.THRESHOLD)
    failed = jobs.QUEUE.claim(lease_seconds=60)
    assert failed is not None
    failed.retry(error="OperationalError", delay_seconds=300)

    wish = jobs.request(conversation_id=conversation_id, reason=Reason.MANUAL)

    claimed = jobs.QUEUE.claim(lease_seconds=60)
    assert claimed is not None
    assert claimed.row.job_id == wish


def test_a_persons_wish_outlives_a_job_that_gives_way_to_another(committed_db):
    conversation_id = a_conversation("hello").conversation_id
    jobs.request(conversation_id=conversation_id, reason=Reason.MANUAL)
    failed = jobs.QUEUE.claim(lease_seconds=60)
    assert failed is not None
    waiting = jobs.request(conversation_id=conversation_id, reason=Reason.THRESHOLD)

    failed.retry(error="OperationalError", delay_seconds=300)

    assert CompactionJob.objects.get(state=JobState.QUEUED).job_id == waiting
    assert CompactionJob.objects.get(pk=waiting).reason == Reason.MANUAL


def test_a_conversation_that_somebody_else_compacts_for_long_costs_its_job_no_attempt(committed_db):
    conversation_id = a_conversation("hello").conversation_id
    job_id = jobs.request(conversation_id=conversation_id, reason=Reason.MANUAL)
    worker = CompactionWorker.from_settings()

    with another_session_compacts(conversation_id):
        for _ in range(MAX_ATTEMPTS + 1):
            assert worker.work(job_id=job_id)
            past = timezone.now() - timedelta(seconds=1)
            CompactionJob.objects.update(run_after=past, leased_until=past)
    worker.work(job_id=job_id)

    assert CompactionJob.objects.get(pk=job_id).state == JobState.DONE


def test_a_job_whose_model_takes_longer_than_a_lease_stays_with_its_worker(committed_db, settings, monkeypatch):
    settings.LCM = {"job_lease_seconds": 3}
    job_id = jobs.request(conversation_id=a_conversation(*[LONG] * 20).conversation_id, reason=Reason.MANUAL)
    summarize = ExtractiveSummarizer.summarize
    claimed_meanwhile = []

    def slowly(self: ExtractiveSummarizer, request: SummaryRequest) -> SummaryDraft:
        first_lease = CompactionJob.objects.get(pk=job_id).leased_until
        wait_until(lambda: timezone.now() > first_lease, seconds=60, what="the first lease has run out")
        claimed_meanwhile.append(jobs.QUEUE.claim(lease_seconds=3))
        return summarize(self, request)

    monkeypatch.setattr(ExtractiveSummarizer, "summarize", slowly)
    CompactionWorker.from_settings().work(job_id=job_id)

    job = CompactionJob.objects.get(pk=job_id)
    assert set(claimed_meanwhile) == {None}
    assert (job.state, job.attempts, Summary.objects.exists()) == (JobState.DONE, 1, True)


@pytest.mark.parametrize(("name", "work"), [("compaction", jobs), ("maintenance", scans)])
def test_a_wake_up_reaches_somebody_at_the_commit_even_after_a_restart_of_the_queues_server(committed_db, name, work):
    queue = get_queue(name)
    waiting = queue.pending_count()
    with connection.cursor() as cursor, transaction.atomic():
        work.wake(1, 0.0)
        assert queue.pending_count() == waiting
        cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [queue.storage.conn.info.backend_pid])

    assert queue.pending_count() == waiting + 1


def test_an_append_that_nobody_can_be_woken_for_is_acknowledged_all_the_same(committed_db, settings, monkeypatch):
    monkeypatch.setattr("conversations.work.queue._asleep_until", 0.0)
    settings.LCM = {"model_token_budget": 1000}
    conversation_id, storage = a_conversation().conversation_id, get_queue("compaction").storage
    storage.close()
    away = partial(psycopg.connect, host="127.0.0.1", port=9, connect_timeout=5)
    monkeypatch.setattr(storage, "connection", away)

    result = say(conversation_id, *[LONG] * 20)

    assert all(message.created for message in result.messages)
    assert list(jobs.QUEUE.due()) == [CompactionJob.objects.get(conversation_id=conversation_id)]


@pytest.mark.parametrize(
    ("failure", "tried"), [(ConnectionError, [1, 1, 2, 2]), (TimeoutError, [1, 2]), (redis.TimeoutError, [1, 2])]
)
def test_after_a_failed_wake_up_none_is_tried_for_a_while(
    monkeypatch, django_capture_on_commit_callbacks, db, failure, tried
):
    task = Mock(side_effect=failure)
    monkeypatch.setattr("compaction.tasks.compact_conversation", task)

    for job_id in (1, 2):
        monkeypatch.setattr("conversations.work.queue._asleep_until", time.monotonic())
        with django_capture_on_commit_callbacks(execute=True):
            for _ in range(3):
                jobs.wake(job_id, 0.0)

    assert [call.kwargs["job_id"] for call in task.call_args_list] == tried


@pytest.mark.parametrize("table", ["message_parts", "compaction_runs"])
def test_a_failure_between_the_writes_leaves_no_partial_graph_and_no_run_that_claims_one(committed_db, engine, table):
    conversation = a_talk()
    built = engine(leaf_chunk_tokens=600)
    items = ContextItem.objects.order_by("ordinal").values_list("ordinal", "message_id", "summary_id")
    before = list(items)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            # What is told of the run afterwards is let through, so that it shows if it is not true.
            "IF to_jsonb(NEW) ->> 'outcome' = 'failed' THEN RETURN NEW; END IF; "
            "RAISE EXCEPTION 'no room'; END $$; "
            f"CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse_once()"
        )
        try:
            with pytest.raises(Exception, match="no room"), structlog.testing.capture_logs() as logs:
                built.compact(conversation_id=conversation.conversation_id)
        finally:
            cursor.execute("DROP FUNCTION refuse_once CASCADE")

    assert list(items.all()) == before
    assert not Summary.objects.exists()
    assert not CompactionRun.objects.exists()
    (failed,) = [entry for entry in logs if entry["event"] == "compaction_failed"]
    assert failed["token_after"] == failed["token_before"]

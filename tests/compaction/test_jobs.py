from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from compaction.background import jobs
from compaction.background.worker import CompactionWorker
from compaction.engine import CompactionEngine
from compaction.models import CompactionJob, CompactionRun
from compaction.run import Run
from compaction.types import JobState, Outcome, Reason
from conversations.errors import ConversationBusy
from conversations.models import Conversation, Summary
from conversations.work.queue import Lease, LeaseLost
from tests.factories import a_conversation, a_store, say

pytestmark = pytest.mark.django_db

LONG = "Something worth remembering was said about service-7 and port 5433. " * 10


def claim(lease_seconds: int = 60, job_id: int | None = None) -> Lease[CompactionJob] | None:
    return jobs.QUEUE.claim(lease_seconds=lease_seconds, row_id=job_id)


def let_the_lease_run_out(job_id: int) -> None:
    CompactionJob.objects.filter(pk=job_id).update(leased_until=timezone.now() - timedelta(seconds=1))


@pytest.mark.parametrize(
    ("wishes", "reason"),
    [
        ([Reason.THRESHOLD, Reason.THRESHOLD], Reason.THRESHOLD),
        # A person's wish outranks the machine's, and pressure a redo that waits for a model.
        ([Reason.THRESHOLD, Reason.MANUAL, Reason.THRESHOLD], Reason.MANUAL),
        ([Reason.REDO, Reason.THRESHOLD, Reason.REDO], Reason.THRESHOLD),
        ([Reason.REDO_ALL, Reason.THRESHOLD, Reason.REDO], Reason.REDO_ALL),
        ([Reason.REDO, Reason.MAINTENANCE, Reason.THRESHOLD], Reason.MAINTENANCE),
        ([Reason.MAINTENANCE, Reason.MANUAL, Reason.MAINTENANCE], Reason.MANUAL),
    ],
    ids=str,
)
def test_wishes_for_one_conversation_fall_together_under_the_highest(wishes, reason):
    conversation_id = a_conversation("hello").conversation_id

    asked = {jobs.request(conversation_id=conversation_id, reason=wish) for wish in wishes}

    assert [(job.job_id, job.reason) for job in CompactionJob.objects.all()] == [(asked.pop(), reason)]
    assert not asked


@pytest.mark.parametrize("reason", [Reason.THRESHOLD, Reason.MAINTENANCE, Reason.MANUAL])
def test_a_redo_replaces_no_queued_compaction_and_its_caller_is_told(engine, reason):
    conversation_id = a_conversation("hello").conversation_id
    jobs.request(conversation_id=conversation_id, reason=reason)

    with pytest.raises(ConversationBusy):
        engine().request_redo(conversation_id=conversation_id)
    assert CompactionJob.objects.get().reason == reason

    claim().finish()
    assert engine().request_redo(conversation_id=conversation_id).reason is Reason.REDO_ALL


@pytest.mark.parametrize(("at_work", "queued"), [(Reason.REDO_ALL, Reason.THRESHOLD), (Reason.MANUAL, Reason.REDO_ALL)])
def test_an_unfinished_redo_and_a_compaction_are_both_kept_and_the_compaction_goes_first(at_work, queued, wake_ups):
    conversation_id = a_conversation("hello").conversation_id
    jobs.request(conversation_id=conversation_id, reason=at_work)
    lease = claim()
    jobs.request(conversation_id=conversation_id, reason=queued)
    wake_ups.clear()

    lease.release()

    assert sorted(jobs.open_jobs().values_list("reason", flat=True)) == sorted([at_work, queued])
    (first, delay), *later = wake_ups
    assert (delay, later) == (0.0, [] if first == lease.row.job_id else [(lease.row.job_id, 2.0)])
    assert claim(job_id=first).row.reason != Reason.REDO_ALL


def test_a_job_can_be_watched_to_its_end_and_names_the_run_it_led_to(settings):
    settings.LCM = {"leaf_chunk_tokens": 1000}
    conversation = a_conversation(*[LONG] * 20)
    engine = CompactionEngine.from_settings(a_store().scope)
    job = engine.request(conversation_id=conversation.conversation_id)
    assert engine.get_job(job_id=job.job_id).state == JobState.QUEUED

    CompactionWorker.from_settings().work(job_id=job.job_id)

    done = engine.get_job(job_id=job.job_id)
    assert done.state == JobState.DONE
    assert done.finished_at is not None
    assert done.run_ids == (CompactionRun.objects.get().run_id,)


def test_a_worker_that_lost_its_lease_writes_no_summary(engine):
    conversation = a_conversation(*[LONG] * 20)
    job_id = jobs.request(conversation_id=conversation.conversation_id, reason=Reason.MANUAL)
    silent = claim()
    let_the_lease_run_out(job_id)
    claim()

    with pytest.raises(LeaseLost):
        engine().compact(conversation_id=conversation.conversation_id, lease=silent)

    assert not Summary.objects.exists()
    assert not CompactionRun.objects.exists()


def test_a_wake_up_that_finds_the_job_in_other_hands_looks_again_later(wake_ups):
    job_id = jobs.request(conversation_id=a_conversation("hello").conversation_id, reason=Reason.MANUAL)
    claim(lease_seconds=60)
    wake_ups.clear()

    assert not CompactionWorker.from_settings().work(job_id=job_id)

    ((woken, delay),) = wake_ups
    assert woken == job_id
    assert 50 < delay < 62


def test_an_append_that_fills_the_context_asks_for_room(settings):
    settings.LCM = {"model_token_budget": 1000}

    conversation = a_conversation(*[LONG] * 20)

    job = CompactionJob.objects.get()
    assert job.conversation_id == conversation.conversation_id
    assert job.reason == Reason.THRESHOLD


def test_while_the_pressure_lasts_an_append_asks_again_only_now_and_then(settings):
    settings.LCM = {"max_active_messages": 4}
    conversation, store = a_conversation(*["hello"] * 61), a_store()
    CompactionJob.objects.all().delete()
    asked = []

    for count in (62, 63, 64, 65, 126, 127, 128, 129):
        more = count - store.get_conversation(conversation_id=conversation.conversation_id).counters.message_count
        say(conversation.conversation_id, *["more"] * more)
        if CompactionJob.objects.all().delete()[0]:
            asked.append(count)

    assert asked == [64, 128]


@pytest.mark.parametrize("setting", [{"enabled": False}, {"autocompact_disabled": True}])
def test_nobody_asks_for_room_where_compaction_is_switched_off(settings, setting):
    settings.LCM = {"model_token_budget": 1000, **setting}

    a_conversation(*[LONG] * 20)
    CompactionWorker.from_settings().sweep()

    assert not CompactionJob.objects.exists()


def test_the_sweep_finds_pressure_that_nobody_asked_about(settings, wake_ups):
    conversation = a_conversation(*[LONG] * 20)
    a_conversation("hello")
    settings.LCM = {"model_token_budget": 1000}

    CompactionWorker.from_settings().sweep()

    job = CompactionJob.objects.get()
    assert (job.conversation_id, job.reason) == (conversation.conversation_id, Reason.MAINTENANCE)
    assert len(wake_ups) == 1
    CompactionWorker.from_settings().work()
    run = CompactionRun.objects.get()
    assert run.reason == Reason.MAINTENANCE
    engine = CompactionEngine.from_settings()
    assert [each.run_id for each in engine.list_runs(reason=Reason.MAINTENANCE)] == [run.run_id]
    assert engine.list_runs(reason=Reason.THRESHOLD) == []


def test_the_sweep_judges_a_conversation_by_its_own_settings():
    conversation = a_conversation(*[LONG] * 20)
    Conversation.objects.filter(pk=conversation.conversation_id).update(overrides={"model_token_budget": 1000})

    CompactionWorker.from_settings().sweep()

    assert CompactionJob.objects.filter(conversation_id=conversation.conversation_id).exists()


def test_an_exhausted_conversation_is_not_asked_about_until_there_is_more_of_it(settings):
    settings.LCM = {"model_token_budget": 500}
    conversation = a_conversation(*[LONG] * 8)
    worker = CompactionWorker.from_settings()
    worker.work()
    assert CompactionRun.objects.get().outcome == Outcome.EXHAUSTED

    say(conversation.conversation_id, "more")
    worker.sweep()
    assert not CompactionJob.objects.filter(state=JobState.QUEUED).exists()

    say(conversation.conversation_id, *[LONG] * 8)
    assert CompactionJob.objects.filter(state=JobState.QUEUED).exists()


def test_what_is_appended_during_an_exhausted_run_is_more_of_it(settings, monkeypatch):
    settings.LCM = {"model_token_budget": 500}
    conversation_id, follow = a_conversation(*[LONG] * 8).conversation_id, Run.follow
    with monkeypatch.context() as patched:
        patched.setattr(Run, "follow", lambda *given: (follow(*given), say(conversation_id, *[LONG] * 8))[0])
        CompactionWorker.from_settings().work()
    assert CompactionRun.objects.get().outcome == Outcome.EXHAUSTED

    CompactionWorker.from_settings().sweep()

    assert CompactionJob.objects.filter(state=JobState.QUEUED).exists()


def test_a_run_stopped_by_its_bounds_goes_on_in_its_job(settings):
    conversation = a_conversation(*[LONG] * 28)
    job_id = jobs.request(conversation_id=conversation.conversation_id, reason=Reason.MANUAL)
    settings.LCM = {"max_passes": 1, "leaf_chunk_tokens": 1000, "fresh_tail_count": 4}
    worker = CompactionWorker.from_settings()

    for _ in range(30):
        worker.work(job_id=job_id)
        let_the_lease_run_out(job_id)
        if CompactionJob.objects.get(pk=job_id).state == JobState.DONE:
            break

    assert CompactionJob.objects.get(pk=job_id).state == JobState.DONE
    assert CompactionRun.objects.count() > 2
    calm = CompactionEngine.from_settings().compact(conversation_id=conversation.conversation_id)
    assert calm.outcome is Outcome.NOTHING_TO_DO

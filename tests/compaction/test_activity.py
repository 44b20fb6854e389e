"""What goes on, in figures: each of them is what rows say, and of the workspace alone."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from compaction.background.statistics import CompactionActivity
from compaction.engine import CompactionEngine
from compaction.models import CompactionJob, CompactionRun
from compaction.types import JobState, Outcome, Reason
from conversations.models import Summary
from conversations.scope import Scope
from conversations.types import Level
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db

TEXTS = [f"Message {number} about the harbour and its boats. " * 30 for number in range(16)]


def activity_of(name: str = "default") -> CompactionActivity:
    return CompactionActivity.from_settings(Scope(a_workspace(name).pk))


def engine() -> CompactionEngine:
    return CompactionEngine.from_settings(Scope(a_workspace().pk))


def test_what_compaction_took_out_of_contexts_is_saved_by_runs_of_the_last_hours():
    conversation_id = a_conversation(*TEXTS).conversation_id
    result = engine().compact(conversation_id=conversation_id)

    told = activity_of().activity()

    assert (told.conversations, told.messages) == (1, 16)
    assert told.active_tokens == result.tokens_after
    assert told.tokens_saved == told.total_tokens - told.active_tokens
    [ran] = told.runs
    assert (ran.outcome, ran.runs) == (Outcome.COMPACTED, 1)
    assert ran.tokens_freed == result.tokens_before - result.tokens_after
    assert told.since <= ran.hour <= timezone.now()
    CompactionRun.objects.update(started_at=timezone.now() - timedelta(hours=30))
    assert not activity_of().activity().runs
    assert activity_of().activity(hours=48).runs and not activity_of("elsewhere").activity(hours=48).runs


def test_a_conversation_is_under_pressure_by_its_own_settings():
    a_conversation("calm")
    pressed = a_conversation(*TEXTS[:10], title="Full", overrides={"max_active_messages": 9}).conversation_id

    told = activity_of().activity()

    assert told.under_pressure == 1
    assert [(each.conversation_id, each.trigger) for each in told.pressed] == [(pressed, "messages")]
    assert told.pressed[0].title == "Full"
    engine().request(conversation_id=pressed)
    told = activity_of("elsewhere").activity()
    assert (told.conversations, told.under_pressure, told.jobs_waiting) == (0, 0, 0)


def test_jobs_wait_are_at_work_or_were_given_up():
    ids = [a_conversation("one").conversation_id for _ in range(4)]
    jobs = [engine().request(conversation_id=each).job_id for each in ids]
    soon, ago = timezone.now() + timedelta(hours=1), timezone.now() - timedelta(hours=1)
    CompactionJob.objects.filter(pk=jobs[1]).update(state=JobState.LEASED, leased_until=soon)
    CompactionJob.objects.filter(pk=jobs[2]).update(state=JobState.LEASED, leased_until=ago)
    CompactionJob.objects.filter(pk=jobs[3]).update(
        state=JobState.FAILED, finished_at=timezone.now(), last_error="Gone"
    )
    CompactionJob.objects.filter(pk=jobs[0]).update(requested_at=ago)

    told = activity_of().activity()

    # One whose worker has fallen silent waits for another.
    assert (told.jobs_waiting, told.jobs_at_work, told.jobs_failed) == (2, 1, 1)
    assert told.oldest_job_at == ago


def test_summaries_are_counted_by_level_with_the_share_that_is_degraded(settings):
    before = activity_of().activity()
    old = a_conversation(*TEXTS).conversation_id
    # It was not made by a run here.
    a_summary_of(a_store(), old, seqs=[1], level=Level.AGGRESSIVE)
    # No model is there, so summaries of whole sentences are made in its place.
    settings.LCM = {**settings.LCM, "summarizer": "chat,extractive", "leaf_chunk_tokens": 2000, "max_depth": 0}
    engine().compact(conversation_id=a_conversation(*TEXTS).conversation_id)
    settings.LCM = {**settings.LCM, "summarizer": "extractive"}
    for level in Level:
        conversation_id = a_conversation(*TEXTS).conversation_id
        a_summary_of(a_store(), conversation_id, seqs=[1], level=level)
        engine().compact(conversation_id=conversation_id)

    told = activity_of().activity()

    made = Summary.objects.exclude(conversation_id=old)
    assert (before.summaries, before.levels, before.degraded_share) == (0, (), None)
    assert told.summaries == made.count() > 5
    assert {each.level: each.summaries for each in told.levels} == Counter(made.values_list("level", flat=True))
    assert set(Level) == {each.level for each in told.levels}
    assert sum(each.share for each in told.levels) == pytest.approx(1, abs=0.001)
    assert told.degraded_summaries == made.filter(is_degraded=True).count() > 0
    assert told.degraded_share == pytest.approx(told.degraded_summaries / told.summaries, abs=0.001)
    assert activity_of("elsewhere").activity().summaries == 0


def test_runs_are_listed_of_all_conversations_by_how_they_ended():
    ids = [a_conversation(*TEXTS, title=f"Talk {number}").conversation_id for number in range(2)]
    for each in ids:
        engine().compact(conversation_id=each)
    newest, oldest = engine().list_runs()
    CompactionRun.objects.filter(pk=oldest.run_id).update(outcome=Outcome.FAILED, reason=Reason.THRESHOLD)
    listed = engine().list_runs

    assert [run.title for run in listed()] == ["Talk 1", "Talk 0"]
    assert [run.run_id for run in listed(outcome="failed")] == [oldest.run_id]
    assert [run.run_id for run in listed(reason="manual")] == [newest.run_id]


def test_a_run_tells_how_many_of_its_summaries_are_degraded(settings):
    conversation_id = a_conversation(*TEXTS, overrides={"leaf_chunk_tokens": 1000}).conversation_id
    engine().compact(conversation_id=conversation_id)
    # As they are where a model should have been asked and none answered.
    settings.LCM = {**settings.LCM, "summarizer": "chat,extractive"}
    other = a_conversation(*TEXTS).conversation_id
    engine().compact(conversation_id=other)

    degraded = {
        each: Summary.objects.filter(conversation_id=each, is_degraded=True).count()
        for each in (conversation_id, other)
    }
    told = {run.conversation_id: run.degraded_summaries for run in engine().list_runs()}

    assert told == degraded
    assert degraded[conversation_id] == 0 < degraded[other]


def test_a_status_has_the_last_run():
    conversation_id = a_conversation(*TEXTS).conversation_id
    before = engine().evaluate(conversation_id=conversation_id)
    for _ in range(2):
        engine().compact(conversation_id=conversation_id)
        say(conversation_id, *TEXTS)

    after = engine().evaluate(conversation_id=conversation_id)

    runs = engine().list_runs(conversation_id=conversation_id)
    assert (before.run_id, before.run, len(runs)) == (None, None, 2)
    assert (after.run_id, after.run) == (runs[0].run_id, runs[0])


def test_jobs_are_listed_newest_first_of_all_conversations_or_of_one():
    ids = [a_conversation("one").conversation_id for _ in range(2)]
    jobs = [engine().request(conversation_id=each).job_id for each in ids]
    listed = activity_of().list_jobs

    assert [job.job_id for job in listed()] == jobs[::-1]
    assert [job.job_id for job in listed(conversation_id=ids[0])] == jobs[:1]

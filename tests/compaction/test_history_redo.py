"""A person has sessions, arcs and epochs made again; the sweep does it where something was quarantined since."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from compaction.engine import CompactionEngine
from compaction.history.history_redo import HistoryRedo
from compaction.history.history_sources import withheld_sessions
from compaction.history.history_worker import MOST_ATTEMPTS, HistoryWorker
from compaction.history.models import HistoryJob, SessionSummary
from compaction.history.session_history import QuarantinesChanged, SessionHistory
from compaction.history.types import HistoryReason
from compaction.llm.types import Unreachable
from compaction.rendering import WITHHELD
from compaction.types import JobState
from conversations.errors import NotFound
from conversations.models import Message
from conversations.scope import Scope
from integrity.repairs.quarantines import Quarantines
from tests.compaction.test_session_history import SMALL, Model, with_a_model
from tests.factories import a_workspace
from tests.histories import a_session, current, go_on, members, summarize, work_off
from tests.integrity.breaking import checked, damaging

pytestmark = pytest.mark.django_db

HASHES = "session_summaries_match_their_hashes"


@pytest.fixture
def past(settings) -> list[SessionSummary]:
    """Four sessions in two arcs, and these in an epoch, from the bottom up."""
    settings.LCM = SMALL
    summarize(a_session(number) for number in range(4))
    return [each for depth in (0, 1, 2) for each in current(depth)]


def redo(summary: SessionSummary | str, **scope: Scope):
    redone = HistoryRedo.from_settings(**scope)
    return redone.redo_session(summary_id=summary if isinstance(summary, str) else summary.pk)


def damage(*summaries: SessionSummary) -> None:
    for each in summaries:
        damaging(f"UPDATE session_summaries SET content = 'altered' WHERE summary_id = '{each.pk}'")


@pytest.mark.parametrize("place", [0, 4, 6], ids=["session", "arc", "epoch"])
def test_a_damaged_one_is_made_again_and_what_is_above_is_renewed(past, place):
    damage(past[place])

    redone = redo(past[place])
    work_off()

    assert (redone.created, redone.below, redone.summary.supersedes_id) == (True, 0, past[place].pk)
    assert "altered" not in redone.summary.content
    assert SessionSummary.objects.filter(supersedes__isnull=False).count() == {0: 3, 4: 2, 6: 1}[place]
    [epoch] = current(2)
    assert [each.pk for each in members(epoch)] == [each.pk for each in current(1)]
    # The old row is kept as the evidence that it is.
    assert checked() == {HASHES: [past[place].pk]}
    assert not redo(past[place]).created


def test_what_is_damaged_below_comes_first(past):
    damage(past[2], past[4], past[6])

    redone = redo(past[6])

    # The session, the arc that rests on it, and the other one.
    assert (redone.created, redone.below) == (True, 3)
    assert redone.summary.content == current(2)[0].content
    assert not [each.pk for depth in (0, 1, 2) for each in current(depth) if "altered" in each.content]
    assert set(checked()) == {HASHES}


def test_a_lost_link_of_a_session_is_in_the_new_one(past):
    damaging(f"DELETE FROM session_summary_memories WHERE summary_id = '{past[0].pk}' AND ordinal = 1")
    assert "sessions_reach_every_message" in checked()

    redo(past[0])
    work_off()

    assert "sessions_reach_every_message" not in checked()


def test_one_that_is_whole_stays_and_of_a_superseded_one_the_current_one_counts(past):
    whole = redo(past[6])
    assert (whole.created, whole.summary.summary_id) == (False, past[6].pk)
    assert SessionSummary.objects.count() == len(past)

    go_on(past[0].conversation)
    summarize([past[0].conversation])
    assert redo(past[0]).summary.summary_id == current(0)[0].pk


def test_what_was_made_without_a_model_is_made_again_with_one(settings):
    settings.LCM = SMALL
    model = Model(Unreachable("away"))
    history = with_a_model(model)
    for number in range(2):
        history.summarize_session(conversation_id=a_session(number).conversation_id)
    HistoryWorker(history=history).work()
    [arc] = current(1)
    assert arc.is_degraded
    again = replace(HistoryRedo.from_settings(), history=history)

    assert not again.redo_session(summary_id=arc.pk).created
    assert SessionSummary.objects.count() == 3
    model.failure = None
    redone = again.redo_session(summary_id=arc.pk)

    assert (redone.created, redone.below, redone.summary.is_degraded) == (True, 2, False)
    assert not any(each.is_degraded for depth in (0, 1) for each in current(depth))
    assert not again.redo_session(summary_id=arc.pk).created
    assert checked() == {}


def test_in_the_background_workers_make_what_is_below_and_then_the_rest(past):
    damage(past[1], past[6])

    job = HistoryRedo.from_settings().request_redo_session(summary_id=past[6].pk)
    assert (job.project, job.conversation_id, job.state) == ("harbour", None, JobState.QUEUED)
    listed = SessionHistory.from_settings().list_jobs(project="harbour", state="queued")
    assert {each.conversation_id for each in listed} == {None, past[1].conversation_id}
    work_off()

    assert not [each.pk for depth in (0, 1, 2) for each in current(depth) if "altered" in each.content]
    assert not SessionHistory.from_settings().list_jobs(state="queued")


def test_an_arc_is_made_of_nothing_that_is_quarantined_and_renewed_when_it_is_released(settings):
    settings.LCM = SMALL
    hidden, other = (a_session(number) for number in range(2))
    SessionHistory.from_settings().summarize_session(conversation_id=hidden.conversation_id)
    messages = Message.objects.filter(conversation_id=hidden.conversation_id)
    held = [Quarantines.from_settings().quarantine(id=f"msg_{each.pk}", reason="no") for each in messages]
    model = Model()

    with_a_model(model).summarize_session(conversation_id=other.conversation_id)
    HistoryWorker(history=with_a_model(model)).work()

    [arc] = current(1)
    assert [source.source_id for source in model.requests[-1].sources] == [current(0)[1].pk]
    assert HistoryRedo.from_settings().redo_session(summary_id=arc.pk).below == 1
    [remade], none = current(1), current(0)[0]
    assert (remade.supersedes_id, none.content) == (arc.pk, WITHHELD)
    assert not withheld_sessions(None) & {remade.pk, none.pk}
    for each in held:
        Quarantines.from_settings().release(quarantine_id=each.quarantine_id)
    summarize([hidden])
    assert current(1)[0].supersedes_id == remade.pk and WITHHELD not in current(0)[0].content


@pytest.mark.parametrize("is_member", [False, True], ids=["of another project", "of a member"])
def test_an_arc_is_refused_for_a_quarantine_of_its_own_members_alone(settings, is_member):
    settings.LCM = SMALL
    sessions = [a_session(0), a_session(1), a_session(0, project="lighthouse")]
    for session in sessions:
        SessionHistory.from_settings().summarize_session(conversation_id=session.conversation_id)
    of = sessions[0 if is_member else 2].conversation_id
    hidden = Message.objects.filter(conversation_id=of)[0]
    quarantine = partial(Quarantines.from_settings().quarantine, id=f"msg_{hidden.pk}", reason="no")
    history = with_a_model(Model(meanwhile=quarantine))
    project_id = current(0)[0].project_id

    make = partial(history.make_of_project, project_id=project_id, reason=HistoryReason.MANUAL)
    with pytest.raises(QuarantinesChanged) if is_member else nullcontext():
        make()

    assert len(current(1)) == (0 if is_member else 1)


def test_what_was_quarantined_since_is_not_in_an_arc_that_a_person_has_made_again(past):
    go_on(past[0].conversation, "The key is zanzibar-7751.")
    summarize([past[0].conversation])
    [arc, _] = current(1)
    Quarantines.from_settings().quarantine(id=f"msg_{Message.objects.latest('pk').pk}", reason="no")

    redone = redo(arc)

    assert "zanzibar" in arc.content
    assert (redone.created, redone.below) == (True, 1) and "zanzibar" not in redone.summary.content


def test_somebody_elses_is_not_found(past):
    with pytest.raises(NotFound):
        redo(past[6], scope=Scope(a_workspace("another").pk))
    assert not SessionHistory.from_settings(Scope(a_workspace("another").pk)).list_jobs()


@pytest.mark.parametrize("is_summarized", [False, True], ids=["a raw message", "a message below a summary"])
def test_the_sweep_takes_over_what_is_quarantined_and_what_is_released(settings, is_summarized):
    settings.LCM = {**SMALL, "leaf_chunk_tokens": 200, "leaf_target_tokens": 64, "fresh_tail_count": 2}
    sessions = [a_session(number, length=12) for number in range(2)]
    if is_summarized:
        CompactionEngine.from_settings().compact(conversation_id=sessions[0].conversation_id)
    summarize(sessions)
    session, arc = current(0)[0], current(1)[0]
    hidden = Message.objects.get(conversation_id=sessions[0].conversation_id, seq=1)
    quarantines = Quarantines.from_settings(Scope(a_workspace().pk))
    worker = HistoryWorker.from_settings()

    held = quarantines.quarantine(id=f"msg_{hidden.pk}", reason="wrong")
    worker.sweep()
    work_off()

    [renewed] = SessionSummary.objects.current().filter(conversation_id=session.conversation_id)
    assert renewed.supersedes_id == session.pk
    assert current(1)[0].supersedes_id == arc.pk
    assert "remark 0." not in renewed.content
    jobs = HistoryJob.objects.count()
    worker.sweep()
    assert HistoryJob.objects.count() == jobs

    quarantines.release(quarantine_id=held.quarantine_id)
    worker.sweep()
    work_off()

    assert SessionSummary.objects.current().get(conversation_id=session.conversation_id).supersedes_id == renewed.pk
    assert checked() == {}


def test_a_sweep_requests_no_more_than_so_many_that_wait_for_a_model(settings):
    away = with_a_model(Model(Unreachable("away")))
    for number in range(3):
        away.summarize_session(conversation_id=a_session(number, project=None).conversation_id)
    settings.LCM = {"summarizer": "chat", "chat_url": "http://127.0.0.1:9/v1", "chat_model": "a-model"}
    history = with_a_model(Model())
    worker = HistoryWorker(history=replace(history, policy=replace(history.policy, most_requested=2)))
    redos = HistoryJob.objects.filter(reason="redo")

    worker.sweep()
    assert redos.count() == 2
    worker.sweep()
    assert redos.count() == 3

    redos.update(state="failed", finished_at=timezone.now())
    worker.sweep()
    assert redos.count() == 3
    replace(worker, now=lambda: timezone.now() + timedelta(hours=1)).sweep()
    assert redos.count() == 5

    one = redos.first()
    HistoryJob.objects.bulk_create(
        HistoryJob(
            workspace_id=one.workspace_id,
            conversation_id=one.conversation_id,
            reason="redo",
            state="failed",
            finished_at=timezone.now(),
        )
        for _ in range(MOST_ATTEMPTS)
    )
    redos.filter(state="queued").update(state="failed", finished_at=timezone.now())
    replace(worker, now=lambda: timezone.now() + timedelta(days=2)).sweep()
    queued = set(redos.filter(state="queued").values_list("conversation_id", flat=True))
    assert len(queued) == 2 and one.conversation_id not in queued

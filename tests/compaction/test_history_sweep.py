"""The sweep renews what was made without a model, and what something was quarantined of or released since."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from compaction.engine import CompactionEngine
from compaction.history.history_sources import withheld_sessions
from compaction.history.history_worker import HistoryWorker
from compaction.history.models import HistoryJob, SessionSummary
from compaction.history.session_history import QuarantinesChanged, SessionHistory
from compaction.history.types import HistoryReason
from compaction.llm.types import Unreachable
from compaction.redo import MOST_ATTEMPTS
from compaction.rendering import WITHHELD
from conversations.models import Message
from conversations.scope import Scope
from integrity.repairs.quarantines import Quarantines
from tests.compaction.model_settings import Model
from tests.compaction.test_session_history import SMALL, with_a_model
from tests.factories import a_workspace
from tests.histories import a_session, current, summarize, work_off
from tests.integrity.breaking import checked

pytestmark = pytest.mark.django_db


def test_what_was_made_without_a_model_is_made_again_with_one(settings):
    settings.LCM = SMALL
    model = Model(Unreachable("away"))
    history = with_a_model(model)
    for number in range(2):
        history.summarize_session(conversation_id=a_session(number).conversation_id)
    HistoryWorker(history=history).work()
    [arc] = current(1)
    assert arc.is_degraded

    assert not history.redo_session(summary_id=arc.pk).created
    assert SessionSummary.objects.count() == 3
    model.failure = None
    redone = history.redo_session(summary_id=arc.pk)

    assert (redone.created, redone.below, redone.summary.is_degraded) == (True, 2, False)
    assert not any(each.is_degraded for depth in (0, 1) for each in current(depth))
    assert not history.redo_session(summary_id=arc.pk).created
    assert checked() == {}


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
    assert SessionHistory.from_settings().redo_session(summary_id=arc.pk).below == 1
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

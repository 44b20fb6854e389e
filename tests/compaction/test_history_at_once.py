"""Workers at the same session or project make one summary."""

from __future__ import annotations

from contextlib import suppress

import pytest

from compaction.history import history_jobs
from compaction.history.history_worker import HistoryWorker
from compaction.history.models import HistoryJob, SessionSummary
from compaction.history.session_history import SessionHistory, project_lock
from compaction.history.types import HistoryReason
from compaction.run import compaction_lock
from conversations.errors import Conflict, ConversationBusy
from tests.conversations.appending import at_once
from tests.factories import a_workspace
from tests.histories import a_session, current, summarize, work_off
from tests.integrity.breaking import checked


def test_two_workers_at_once_make_one_summary_of_a_session_and_one_arc(committed_db, settings):
    settings.LCM = {"sessions_per_arc": 2}
    sessions = [a_session(number) for number in range(2)]
    for session in sessions:
        ask = SessionHistory.from_settings().request_session
        ask(conversation_id=session.conversation_id)
        ask(conversation_id=session.conversation_id)
    assert HistoryJob.objects.count() == 2

    def hurry(worker: int) -> None:
        # A source was renewed meanwhile: its job is tried again.
        with suppress(Conflict):
            work_off()

    at_once(hurry, workers=3)
    work_off()

    assert [len(current(depth)) for depth in (0, 1)] == [2, 1]
    assert SessionSummary.objects.count() == 3
    assert checked() == {}


@pytest.mark.parametrize("of_project", [False, True])
def test_who_comes_second_is_busy_and_the_job_waits(committed_db, of_project):
    session = a_session(1)
    summarize([session])
    project_id = SessionSummary.objects.get().project_id
    lock = project_lock(project_id) if of_project else compaction_lock(session.conversation_id)
    about = {"project_id": project_id} if of_project else {"conversation_id": session.conversation_id}
    job_id = history_jobs.request(
        workspace_id=SessionSummary.objects.get().workspace_id, reason=HistoryReason.MANUAL, **about
    )

    with lock:
        at_once(lambda worker: HistoryWorker.from_settings().work(job_id=job_id), workers=1)

    job = HistoryJob.objects.get(pk=job_id)
    assert (job.state, job.attempts, job.last_error) == ("leased", 0, ConversationBusy.code)


def test_a_request_counts_although_the_queued_job_is_claimed_meanwhile(committed_db, monkeypatch):
    session, insert = a_session(1), history_jobs.sql.rows
    about = {"workspace_id": a_workspace().pk, "conversation_id": session.conversation_id}
    queued = history_jobs.request(reason=HistoryReason.QUIET, **about)

    def insert_and_claim(*given):
        written = insert(*given)
        history_jobs.QUEUE.claim(lease_seconds=60, row_id=queued)
        return written

    monkeypatch.setattr("compaction.history.history_jobs.sql.rows", insert_and_claim)
    requested = HistoryJob.objects.get(pk=history_jobs.request(reason=HistoryReason.MANUAL, **about))

    assert (requested.reason, requested.state) == (HistoryReason.MANUAL, "queued")

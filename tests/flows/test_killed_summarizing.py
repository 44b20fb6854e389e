"""Workers killed while a model writes session summaries and arcs: each is made in the end, whole, and once."""

from __future__ import annotations

from functools import partial

import pytest

from compaction.history.history_worker import HistoryWorker
from compaction.history.models import HistoryJob, SessionSummary
from compaction.history.session_history import SessionHistory
from conversations.work.queue import WorkState
from tests.compaction.vendor import Vendor, good, hangs
from tests.flows.processes import start_worker, stop, wait_until
from tests.flows.vendors import asking
from tests.flows.walk import assert_clean
from tests.histories import a_session, all_done, current, members

SESSIONS, PER_ARC, KILLS = 4, 2, 3
# A dead worker's job is soon another's; nothing is made but what is requested.
OWN = {"job_lease_seconds": 2, "session_quiet_minutes": 0, "sessions_per_arc": PER_ARC, "autocompact_disabled": True}


def is_made(count: int, vendor: Vendor, asked: int) -> bool:
    """Whether so many summaries are made and the model is asked for another."""
    HistoryWorker.from_settings().sweep()
    return SessionSummary.objects.count() == count and len(vendor.requests) >= asked


@pytest.mark.thorough
@pytest.mark.timeout(280)
def test_a_worker_killed_while_a_model_writes_leaves_nothing_half_and_nothing_twice(committed_db, settings):
    with Vendor(hangs) as vendor:
        own = asking(vendor, "chat", **OWN)
        settings.LCM = {**settings.LCM, **own}
        sessions = [a_session(number) for number in range(SESSIONS)]
        for session in sessions:
            SessionHistory.from_settings().request_session(conversation_id=session.conversation_id)
        for made in range(1, KILLS + 1):
            # One summary is made, and with the next the worker waits for the model.
            vendor.behaves(good, hangs)
            wanted = len(vendor.requests) + 2
            worker = start_worker("compaction", **own)
            try:
                wait_until(partial(is_made, made, vendor, wanted), seconds=120, what="the model is asked again")
            finally:
                worker.kill()
                worker.wait()
            assert SessionSummary.objects.count() == made
            assert_clean()
        vendor.behaves(good)
        last = start_worker("compaction", **own)
        try:
            wait_until(all_done, seconds=120, what="every session is in its arc")
        finally:
            stop([last])

    assert [len(current(depth)) for depth in (0, 1)] == [SESSIONS, SESSIONS // PER_ARC]
    assert not SessionSummary.objects.filter(supersedes__isnull=False).exists()
    assert not HistoryJob.objects.exclude(state=WorkState.DONE).exists()
    below = [each.conversation_id for arc in current(1) for each in members(arc)]
    assert sorted(below) == [session.conversation_id for session in sessions]
    assert_clean()

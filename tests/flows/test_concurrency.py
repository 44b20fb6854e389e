"""Many writers and several workers on one conversation, and workers killed: nothing is lost, nothing is torn."""

from __future__ import annotations

import random
import time

import pytest

from compaction.background import jobs
from compaction.models import CompactionJob
from compaction.types import JobState, Reason
from conversations.models import ContextItem, Summary
from tests.factories import a_conversation
from tests.flows.processes import start_worker, wait_until
from tests.flows.storms import TIGHT, Workers
from tests.flows.walk import assert_clean
from tests.flows.writers import Writers, assert_nothing_is_lost
from tests.round_trip import assert_ledgers_survive

WRITERS = 8


# Between two appends a writer of the short one pauses long enough for the others, and for whatever else is tested.
@pytest.mark.parametrize(
    ("seconds", "pause", "conversations"),
    [pytest.param(10, 0.05, 4, marks=pytest.mark.thorough), pytest.param(60, 0.01, 1, marks=pytest.mark.slow)],
)
@pytest.mark.timeout(600)
def test_eight_writers_and_two_workers_lose_nothing_and_tear_nothing(
    committed_db, settings, seconds, pause, conversations
):
    settings.LCM = TIGHT
    ids = [a_conversation().conversation_id for _ in range(conversations)]

    with Workers(2, **TIGHT), Writers(ids, WRITERS, pause=pause) as writers:
        wait_until(Summary.objects.exists, seconds=60, what="a worker has made a summary")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert_clean()
            time.sleep(0.2)

    assert not writers.failures, writers.failures
    assert writers.written
    for conversation_id in ids:
        assert_nothing_is_lost(conversation_id, writers.written_to(conversation_id))
    assert_clean()
    assert_ledgers_survive()


@pytest.mark.parametrize(
    "kills", [pytest.param(4, marks=pytest.mark.thorough), pytest.param(20, marks=pytest.mark.slow)]
)
@pytest.mark.timeout(600)
def test_a_killed_worker_leaves_no_partial_graph_and_its_job_is_taken_up(committed_db, settings, kills):
    own = {**TIGHT, "job_lease_seconds": 2, "autocompact_disabled": True, "condense_fan_in": 3}
    settings.LCM = own
    chance = random.Random(kills)
    worker = None

    for kill in range(kills):
        conversation = a_conversation(
            *(f"message {n} of {kill}: " + f"value {n} is {n * n}. " * 12 for n in range(600))
        )
        worker = worker or start_worker(**own)
        jobs.request(conversation_id=conversation.conversation_id, reason=Reason.MANUAL)
        made = Summary.objects.filter(conversation_id=conversation.conversation_id)
        wait_until(made.exists, seconds=60, what="the worker is in the middle of its work")
        time.sleep(chance.random() * 0.3)
        worker.kill()
        worker.wait()

        assert_clean()
        job = CompactionJob.objects.get(conversation_id=conversation.conversation_id)
        assert job.state == JobState.LEASED, "the worker was done before it was killed"

        worker = start_worker(**own)
        wait_until(
            lambda job=job: CompactionJob.objects.get(pk=job.pk).state == JobState.DONE,
            seconds=60,
            what="another worker has taken the job up and finished it",
        )
        assert_clean()
        assert ContextItem.objects.filter(conversation_id=conversation.conversation_id).count() < 100
    assert worker is not None
    worker.terminate()
    worker.wait(timeout=30)
    assert_ledgers_survive()

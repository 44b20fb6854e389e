"""Many writers and several workers on one conversation, and workers killed: nothing is lost, nothing is torn."""

from __future__ import annotations

import random
import threading
import time

import pytest
from django.db import connection

from compaction import jobs
from compaction.models import CompactionJob
from compaction.types import JobState, Reason
from conversations.models import ContextItem, Message, Summary
from conversations.types import NewMessage, Role
from integrity.checker import IntegrityChecker
from tests.factories import a_conversation, a_store
from tests.flows.processes import start_worker, wait_until, workers

# Settings under which a conversation is under pressure soon and a run makes many small summaries.
TIGHT = {
    "model_token_budget": 4000,
    "leaf_chunk_tokens": 600,
    "leaf_target_tokens": 100,
    "condensed_target_tokens": 150,
    "max_active_messages": 60,
}
WRITERS = 8


class Writers:
    """Threads that append to one conversation until told to stop, and know what they have written."""

    def __init__(self, conversation_id: int, count: int) -> None:
        self.conversation_id = conversation_id
        self.written: dict[int, str] = {}
        self.failures: list[Exception] = []
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _write(self, number: int) -> None:
        chance = random.Random(number)
        store = a_store()
        turn = 0
        try:
            while not self._stop.is_set():
                texts = [
                    f"writer {number} turn {turn + n} " + "says a thing or two " * 8
                    for n in range(chance.choice((1, 1, 5)))
                ]
                turn += len(texts)
                result = store.append_messages(
                    conversation_id=self.conversation_id,
                    messages=[NewMessage(chance.choice((Role.USER, Role.ASSISTANT)), text) for text in texts],
                )
                with self._lock:
                    self.written.update(
                        {message.message_id: text for message, text in zip(result.messages, texts, strict=True)}
                    )
                time.sleep(0.01)
        except Exception as failure:
            self.failures.append(failure)
        finally:
            connection.close()


def assert_nothing_is_lost(conversation_id: int, written: dict[int, str]) -> None:
    stored = dict(Message.objects.filter(conversation_id=conversation_id).values_list("message_id", "content"))
    assert {message_id: stored.get(message_id) for message_id in written} == written
    seqs = sorted(Message.objects.filter(conversation_id=conversation_id).values_list("seq", flat=True))
    assert seqs == list(range(1, len(seqs) + 1))


def assert_sound(conversation_id: int) -> None:
    report = IntegrityChecker.from_settings().run(conversation_id=conversation_id)
    assert report.is_clean, report


@pytest.mark.parametrize("seconds", [8, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.timeout(180)
def test_eight_writers_and_two_workers_lose_nothing_and_tear_nothing(committed_db, settings, seconds):
    settings.LCM = TIGHT
    conversation = a_conversation("Let us begin.")

    with workers(2, **TIGHT), Writers(conversation.conversation_id, WRITERS) as writers:
        wait_until(Summary.objects.exists, seconds=30, what="a worker has made a summary")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert_sound(conversation.conversation_id)
            time.sleep(0.2)

    assert not writers.failures
    assert len(writers.written) > 8 * seconds
    assert_nothing_is_lost(conversation.conversation_id, writers.written)
    assert_sound(conversation.conversation_id)


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
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

        assert_sound(conversation.conversation_id)
        job = CompactionJob.objects.get(conversation_id=conversation.conversation_id)
        assert job.state == JobState.LEASED, "the worker was done before it was killed"

        worker = start_worker(**own)
        wait_until(
            lambda job=job: CompactionJob.objects.get(pk=job.pk).state == JobState.DONE,
            seconds=60,
            what="another worker has taken the job up and finished it",
        )
        assert_sound(conversation.conversation_id)
        assert ContextItem.objects.filter(conversation_id=conversation.conversation_id).count() < 100
    assert worker is not None
    worker.terminate()
    worker.wait(timeout=30)

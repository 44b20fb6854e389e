"""An hour without a model, and after it: calls stop, conversations are compacted all the same, and are made good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from compaction.background import jobs
from compaction.background.worker import CompactionWorker
from compaction.engine import CompactionEngine
from compaction.llm.endpoints import ModelEndpoints
from compaction.llm.types import BreakerState, EndpointRecord
from compaction.models import CompactionJob
from compaction.redo import MOST_ATTEMPTS
from compaction.summarizing.summarizer_chain import escalation_of
from compaction.types import JobState, Reason
from conversations.models import ContextItem, Conversation, Summary
from conversations.types import Level
from tests.compaction import vendor as does
from tests.compaction.model_settings import Clock
from tests.compaction.vendor import Asked, Vendor, good
from tests.factories import a_conversation, a_store
from tests.flows.vendors import asking
from tests.flows.walk import assert_clean, in_order
from tests.round_trip import assert_ledgers_survive

PAUSE = 300
MESSAGES = 44
SMALL = {"leaf_chunk_tokens": 1000, "leaf_target_tokens": 120, "condensed_target_tokens": 180}

pytestmark = [pytest.mark.usefixtures("committed_db")]


def a_talk(number: int) -> list[str]:
    return [f"In talk {number}, service-{n} was told to listen on port {5000 + n}. " * 5 for n in range(MESSAGES)]


@dataclass
class Site:
    """A worker and the vendor that it asks, under one clock."""

    worker: CompactionWorker
    vendor: Vendor
    clock: Clock

    def compact(self, number: int) -> tuple[int, int]:
        """Have a new conversation compacted in the background, with all else that is due; its id, and the calls."""
        conversation = a_conversation(*a_talk(number), session_id=f"talk-{number}")
        jobs.request(conversation_id=conversation.conversation_id, reason=Reason.MANUAL)
        return conversation.conversation_id, self.work()

    def work(self) -> int:
        """Have everything done that is due; how often the vendor was asked meanwhile."""
        asked = len(self.vendor.requests)
        self.worker.sweep()
        while self.worker.work():
            pass
        return len(self.vendor.requests) - asked

    @property
    def chat(self) -> EndpointRecord:
        endpoints = replace(ModelEndpoints.from_settings(), now=self.clock)
        return next(record for record in endpoints.list_endpoints() if record.name == "chat")


@pytest.fixture
def site(settings: Any) -> Iterator[Callable[..., Site]]:
    def build(*behaviours: Callable[[Asked], None], **more: Any) -> Site:
        vendor = vendors.enter_context(Vendor(*behaviours))
        settings.LCM = asking(vendor, "chat", breaker_failures=3, breaker_pause_seconds=PAUSE, **SMALL, **more)
        clock = Clock(timezone.now())
        engine = CompactionEngine.from_settings()
        escalation = escalation_of("chat", now=clock)
        worker = CompactionWorker(engine=replace(engine, escalation=escalation), now=clock)
        return Site(worker=worker, vendor=vendor, clock=clock)

    with ExitStack() as vendors:
        yield build


def in_context() -> list[Summary]:
    shown = ContextItem.objects.filter(summary__isnull=False).values("summary_id")
    return list(Summary.objects.filter(summary_id__in=shown))


def degraded_in_context() -> list[Summary]:
    return [summary for summary in in_context() if summary.is_degraded]


def assert_sound() -> None:
    assert_clean()
    for conversation in Conversation.objects.all():
        record = a_store().get_conversation(conversation_id=conversation.conversation_id)
        number = int(record.session_id.removeprefix("talk-"))
        assert [content for _, content, _ in in_order(record.conversation_id)] == a_talk(number)
    assert_ledgers_survive()


@pytest.mark.thorough
def test_for_an_hour_nobody_answers_and_then_all_is_made_again(site):
    there = site(does.resets)
    start = there.clock.moment
    probes = 0

    # When nobody answers, the breaker opens, and one call at the end of each pause finds out whether it may close.
    for number in range(10):
        before = there.chat
        conversation_id, calls = there.compact(number)
        if number == 0:
            assert calls == 3
        elif before.open_until > there.clock():
            assert calls == 0
        else:
            assert calls == 1
            probes += 1
        assert there.chat.state is BreakerState.OPEN
        conversation = Conversation.objects.get(pk=conversation_id)
        assert conversation.active_tokens < 0.5 * sum(conversation.messages.values_list("token_count", flat=True))
        there.clock.forward(361)

    # After 5, 10 and 20 minutes; the next 20 are not over.
    assert there.clock() - start > timedelta(hours=1)
    assert probes == 3
    degraded = in_context()
    assert len(degraded) >= 10
    assert all(summary.is_degraded and summary.level == Level.DETERMINISTIC for summary in degraded)
    assert {tuple(summary.quality.get("failures", ())) for summary in degraded} <= {
        ("chat normal: unreachable",),
        ("chat normal: breaker_open",),
    }

    # When it answers again, nobody is told before the pause is over; then the sweep has one conversation's made again,
    # and when that has gone well, everything.
    there.vendor.behaves(good)
    assert there.work() == 0
    last_job = CompactionJob.objects.latest("job_id")
    there.clock.moment = there.chat.open_until + timedelta(seconds=1)
    there.work()
    assert CompactionJob.objects.filter(reason=Reason.REDO, job_id__gt=last_job.job_id).count() == 1
    assert len({summary.conversation_id for summary in in_context() if not summary.is_degraded}) == 1
    there.work()
    made = in_context()
    assert there.chat.state is BreakerState.CLOSED
    assert len(made) == len(degraded)
    assert not any(summary.is_degraded for summary in made)
    assert {(summary.level, summary.model) for summary in made} == {(Level.NORMAL, "served-model")}
    assert {summary.supersedes_id for summary in made} == {summary.summary_id for summary in degraded}
    assert_sound()

    # Then there is nothing left to do.
    done = CompactionJob.objects.count()
    there.clock.forward(3600)
    assert there.work() == 0
    assert CompactionJob.objects.count() == done
    assert set(CompactionJob.objects.values_list("state", flat=True)) == {JobState.DONE}


@pytest.mark.thorough
def test_what_a_model_never_answers_is_asked_for_less_and_less_often_and_then_by_a_person_only(site):
    there = site(does.resets)
    there.compact(0)

    def withholds_the_first(asked: Asked) -> None:
        (does.refusing(400) if "service-0 " in asked.source else good)(asked)

    there.vendor.behaves(withholds_the_first)
    there.clock.forward(PAUSE + 1)
    # Three days by quarters of an hour.
    attempts = []
    for quarter in range(3 * 24 * 4):
        if there.work():
            attempts.append(quarter)
        there.clock.forward(901)

    # Each pause twice the one before, up to a day, and counted from the start: the clock of the runs stands still here.
    assert attempts == [0, 1, 2, 4, 8, 16, 32, 64, 96]
    assert len(attempts) == MOST_ATTEMPTS
    # It has not kept the others from being made again.
    assert len(degraded_in_context()) == 1 < len(in_context())
    last = there.worker.engine.list_runs(conversation_id=in_context()[0].conversation_id, limit=1)[0]
    assert last.details["attempts_without_an_answer"] == len(attempts)
    assert last.details["next_attempt_at"] is None
    # A person's wish is carried out all the same.
    there.vendor.behaves(good)
    job = there.worker.engine.request_redo(conversation_id=last.conversation_id)
    there.work()
    assert job.reason is Reason.REDO_ALL
    assert not degraded_in_context()
    assert_sound()


@pytest.mark.thorough
def test_what_a_model_is_rejected_for_is_not_asked_for_again_and_again(site):
    there = site(does.resets)
    there.compact(0)
    before = in_context()

    def obeys_the_first(asked: Asked) -> None:
        (does.chats if "service-0 " in asked.source else good)(asked)

    there.vendor.behaves(obeys_the_first)
    there.clock.forward(PAUSE + 1)
    there.work()
    [rejected] = degraded_in_context()
    calls = []
    for _ in range(3):
        there.clock.forward(3600)
        calls.append(there.work())

    assert rejected.quality["lack"] == "rejected"
    assert rejected.level == Level.DETERMINISTIC
    assert rejected.supersedes_id in {summary.summary_id for summary in before}
    assert calls == [0, 0, 0]
    assert_sound()
    # A person may want it all the same.
    there.vendor.behaves(good)
    there.worker.engine.redo(conversation_id=rejected.conversation_id)
    assert not degraded_in_context()
    assert_sound()


@pytest.mark.thorough
def test_calls_stop_at_the_limit_and_go_on_when_the_window_is_over(site):
    there = site(good, spend_max_calls=2, spend_window_seconds=600)

    there.compact(0)

    assert len(there.vendor.requests) == 2
    spared = [summary for summary in Summary.objects.all() if summary.is_degraded and "lack" in summary.quality]
    assert spared
    assert {tuple(summary.quality["failures"]) for summary in spared} == {("chat normal: spend_exhausted",)}
    assert_sound()
    windows = 0
    while degraded_in_context():
        assert there.work() == 0
        # The next window, and late enough after the last attempt in vain.
        there.clock.forward(901)
        assert 0 < there.work() <= 2
        windows += 1
        assert windows < 10
    assert windows > 1
    assert_sound()

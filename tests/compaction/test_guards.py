"""What stands before a model: a breaker for when it does not answer, a limit on what it may cost; shared by all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from compaction.endpoints import ModelEndpoints
from compaction.language_models.configuration import ModelsPolicy
from compaction.language_models.guards import MOST_PAUSES, Guard, callable_models, guarded_client
from compaction.language_models.types import CallOutcome, ModelFailed, Prompt, Usage
from compaction.language_models.withheld import BreakerOpen, SpendExhausted
from compaction.models import ModelEndpoint
from tests.compaction.model_settings import Clock, models
from tests.statements import counted_statements

NOTHING = Usage()
FAULTS = (CallOutcome.UNREACHABLE, CallOutcome.RATE_LIMITED, CallOutcome.DENIED)


@dataclass
class Worker:
    """One who asks the model, as often as it is let."""

    policy: ModelsPolicy
    clock: Clock
    name: str = "chat"
    made: list[CallOutcome] = field(default_factory=list)

    @property
    def guard(self) -> Guard:
        return Guard(name=self.name, policy=self.policy, now=self.clock)

    def call(self, outcome: CallOutcome = CallOutcome.ANSWERED, usage: Usage = NOTHING) -> None:
        self.guard.before_call()
        self.made.append(outcome)
        self.guard.after_call(outcome, usage)

    def refusal(self) -> ModelFailed:
        """Why a call would not be made."""
        with pytest.raises((BreakerOpen, SpendExhausted)) as refused:
            self.guard.before_call()
        return refused.value

    def fail(self, times: int, outcome: CallOutcome = CallOutcome.UNREACHABLE) -> None:
        for _ in range(times):
            self.call(outcome)

    @property
    def row(self) -> ModelEndpoint:
        return ModelEndpoint.objects.get(name=self.name)

    def is_reachable(self) -> bool:
        return self.name in callable_models([self.name], policy=self.policy, now=self.clock)


@pytest.fixture
def worker(db) -> Callable[..., Worker]:
    clock = Clock()
    return lambda **settings: Worker(models(**settings), clock)


@pytest.mark.parametrize("outcome", FAULTS)
def test_after_so_many_faults_in_a_row_nobody_asks_for_a_while(worker, outcome):
    first = worker(breaker_failures=3, breaker_pause_seconds=60)
    second = Worker(first.policy, first.clock)
    first.fail(2, outcome)
    assert second.is_reachable()

    second.fail(1, outcome)

    refusal = first.refusal()
    assert refusal.reason == "breaker_open"
    assert refusal.retry_at == first.clock() + timedelta(seconds=60)
    assert not refusal.is_transient
    assert not second.is_reachable()
    assert first.row.calls == 3


def test_an_answer_in_between_makes_the_count_begin_anew(worker):
    asking = worker(breaker_failures=3)

    for _ in range(4):
        asking.fail(2)
        asking.call(CallOutcome.ANSWERED)

    assert asking.is_reachable()
    assert asking.row.consecutive_failures == 0
    assert asking.row.failures == 8


@pytest.mark.parametrize("outcome", [CallOutcome.CONTEXT_LENGTH, CallOutcome.BAD_ANSWER])
def test_a_long_prompt_or_a_bad_answer_does_not_open_the_breaker(worker, outcome):
    asking = worker(breaker_failures=2)

    asking.fail(6, outcome)

    assert asking.is_reachable()
    assert asking.row.open_until is None


def test_a_prompt_that_is_too_long_shows_that_somebody_is_there(worker):
    asking = worker(breaker_failures=2, breaker_pause_seconds=60)
    asking.fail(2)
    asking.clock.forward(60)

    asking.call(CallOutcome.CONTEXT_LENGTH)

    assert asking.row.open_until is None
    assert asking.row.consecutive_failures == 0


def test_when_the_pause_is_over_one_call_finds_out_and_an_answer_closes_the_breaker(worker):
    asking = worker(breaker_failures=2, breaker_pause_seconds=60, model_timeout_seconds=30)
    asking.fail(2)
    asking.clock.forward(60)
    assert asking.is_reachable()

    asking.guard.before_call()
    refusal = asking.refusal()
    was_reachable_for_others = asking.is_reachable()
    asking.guard.after_call(CallOutcome.ANSWERED, NOTHING)

    assert refusal.reason == "breaker_open"
    assert refusal.retry_at == asking.clock() + timedelta(seconds=40)
    assert not was_reachable_for_others
    assert asking.is_reachable()
    asking.fail(1)
    assert asking.is_reachable()


def test_a_probe_that_nobody_ends_is_taken_over(worker):
    asking = worker(breaker_failures=1, breaker_pause_seconds=60, model_timeout_seconds=30)
    asking.fail(1)
    asking.clock.forward(60)
    asking.guard.before_call()

    asking.clock.forward(40)

    asking.call(CallOutcome.ANSWERED)
    assert asking.row.open_until is None


@pytest.mark.parametrize("outcome", [CallOutcome.REFUSED, CallOutcome.BAD_ANSWER])
def test_a_probe_with_no_usable_answer_has_found_somebody(worker, outcome):
    asking = worker(breaker_failures=2, breaker_pause_seconds=60)
    asking.fail(2)
    asking.clock.forward(60)

    asking.fail(1, outcome)

    assert asking.is_reachable()
    assert (asking.row.open_until, asking.row.last_failure) == (None, outcome.value)


def test_one_chunk_whose_summary_is_always_withheld_does_not_keep_the_others_from_being_asked_for(worker):
    asking = worker(breaker_failures=2, breaker_pause_seconds=60)
    asking.fail(2)

    for _ in range(5):
        asking.clock.forward(60)
        asking.fail(1, CallOutcome.BAD_ANSWER)
        asking.call(CallOutcome.ANSWERED)

    assert asking.is_reachable()
    assert asking.made.count(CallOutcome.ANSWERED) == 5


@pytest.mark.parametrize("outcome", FAULTS)
def test_a_probe_that_fails_makes_the_pause_longer_up_to_a_bound(worker, outcome):
    asking = worker(breaker_failures=2, breaker_pause_seconds=60)
    asking.fail(2)
    pauses = []

    for _ in range(5):
        asking.clock.forward((asking.row.open_until - asking.clock()).total_seconds())
        asking.fail(1, outcome)
        pauses.append((asking.row.open_until - asking.clock()).total_seconds())

    assert pauses == [120, 240, 240, 240, 240]
    assert max(pauses) == MOST_PAUSES * 60


def test_calls_that_had_begun_before_it_opened_make_no_pause_longer(worker):
    asking = worker(breaker_failures=2, breaker_pause_seconds=60)
    for _ in range(6):
        asking.guard.before_call()

    for _ in range(6):
        asking.clock.forward(1)
        asking.guard.after_call(CallOutcome.UNREACHABLE, NOTHING)

    assert asking.row.consecutive_failures == 2
    assert asking.row.open_until == asking.clock() + timedelta(seconds=60 - 4)
    assert asking.row.failures == 6


def test_each_time_the_breaker_opens_the_log_says_so_once(worker, caplog):
    asking = worker(breaker_failures=2, breaker_pause_seconds=60)
    for _ in range(4):
        asking.guard.before_call()

    for _ in range(4):
        asking.guard.after_call(CallOutcome.RATE_LIMITED, NOTHING)
        asking.clock.forward(1)
    asking.clock.forward(60)
    asking.fail(1)

    said = [record.msg for record in caplog.records if "model_left_alone" in str(record.msg)]
    assert [(each["model"], each["reason"]) for each in said] == [("chat", "rate_limited"), ("chat", "unreachable")]


def test_an_answer_that_comes_late_closes_the_breaker_too(worker):
    asking = worker(breaker_failures=1)
    asking.guard.before_call()
    asking.fail(1)

    asking.guard.after_call(CallOutcome.ANSWERED, NOTHING)

    assert asking.is_reachable()


def test_an_hour_without_a_model_costs_a_handful_of_calls(worker):
    asking = worker()
    came_back_at = asking.clock() + timedelta(hours=1)
    asked = 0

    while not asking.made or asking.made[-1] is not CallOutcome.ANSWERED:
        asked += 1
        try:
            asking.call(CallOutcome.UNREACHABLE if asking.clock() < came_back_at else CallOutcome.ANSWERED)
        except BreakerOpen as refusal:
            assert refusal.retry_at > asking.clock()
        asking.clock.forward(10)

    assert asked > 360
    assert len(asking.made) == 5 + 4 + 1
    assert asking.clock() - came_back_at <= timedelta(seconds=MOST_PAUSES * 300)
    assert asking.row.calls == len(asking.made)


def test_each_model_has_a_breaker_of_its_own(worker):
    chat = worker(breaker_failures=1)
    anthropic = Worker(chat.policy, chat.clock, name="anthropic")

    chat.fail(1)

    anthropic.call(CallOutcome.ANSWERED)
    assert not chat.is_reachable()
    chain = ["chat", "anthropic", "extractive"]
    assert callable_models(chain, policy=chat.policy, now=chat.clock) == {"anthropic": True}
    anthropic.fail(1)
    assert callable_models(chain, policy=chat.policy, now=chat.clock) == {}


def test_a_model_whose_pause_is_over_may_be_called_and_is_not_yet_known_to_answer(worker):
    asking = worker(breaker_failures=1, breaker_pause_seconds=60)
    asking.fail(1)
    asking.clock.forward(60)

    found = callable_models(["anthropic", "chat"], policy=asking.policy, now=asking.clock)

    assert list(found.items()) == [("anthropic", True), ("chat", False)]


def test_who_has_no_model_reaches_none_and_asks_nobody(db, settings):
    settings.LCM = {}

    with counted_statements() as sent:
        found = callable_models(["extractive"]), callable_models(["chat", "extractive"])

    assert found == ({}, {})
    assert sent == []


def test_when_the_calls_of_a_window_are_spent_calls_stop_until_it_ends(worker):
    asking = worker(spend_max_calls=3, spend_window_seconds=100)
    began = asking.clock()
    for _ in range(3):
        asking.call()
        asking.clock.forward(10)

    refusal = asking.refusal()
    asking.clock.forward(69)
    still = asking.refusal()
    was_reachable = asking.is_reachable()
    asking.clock.forward(1)

    assert refusal.reason == still.reason == "spend_exhausted"
    assert refusal.retry_at == began + timedelta(seconds=100)
    assert not was_reachable
    assert asking.is_reachable()
    asking.call()
    assert (asking.row.window_calls, asking.row.calls) == (1, 4)
    assert asking.row.window_started_at == asking.clock()


def test_when_the_tokens_of_a_window_are_spent_calls_stop_until_it_ends(worker):
    asking = worker(spend_max_tokens=1000, spend_window_seconds=100)
    asking.call(usage=Usage(900, 50))
    asking.call(CallOutcome.BAD_ANSWER, Usage(40, 10))

    refusal = asking.refusal()
    asking.clock.forward(100)
    asking.call(usage=Usage(10, 5))

    assert refusal.reason == "spend_exhausted"
    assert asking.row.window_tokens == 15
    assert (asking.row.tokens_in, asking.row.tokens_out) == (950, 65)


def test_calls_longer_than_a_window_cost_something_all_the_same(worker):
    asking = worker(spend_max_tokens=1000, spend_window_seconds=10)
    asking.guard.before_call()
    asking.clock.forward(30)

    asking.guard.after_call(CallOutcome.ANSWERED, Usage(2000, 0))

    assert asking.refusal().reason == "spend_exhausted"
    assert asking.row.window_calls == 0


def test_without_limits_nothing_is_ever_spent(worker):
    asking = worker(spend_max_calls=0, spend_max_tokens=0)

    for _ in range(50):
        asking.call(usage=Usage(10**9, 10**9))

    assert asking.is_reachable()
    assert asking.row.tokens_in == 50 * 10**9


def test_a_call_costs_two_statements_and_so_does_one_that_is_withheld(worker):
    asking = worker(breaker_failures=1)
    with counted_statements() as first:
        asking.call(CallOutcome.ANSWERED, Usage(1, 1))
    with counted_statements() as failing:
        asking.fail(1)
    with counted_statements() as withheld:
        asking.refusal()
    with counted_statements() as looking:
        asking.is_reachable()

    def own(sent: list[str]) -> list[str]:
        return [each for each in sent if "SAVEPOINT" not in each]

    assert [len(own(sent)) for sent in (first, failing, withheld, looking)] == [2, 2, 2, 1]


@pytest.mark.usefixtures("committed_db")
def test_no_transaction_may_be_open_around_a_call():
    guard = Guard(name="chat", policy=models())

    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        guard.before_call()

    assert not ModelEndpoint.objects.exists()


@pytest.mark.usefixtures("committed_db")
def test_what_a_call_has_cost_stays_counted_whatever_becomes_of_its_answer():
    guard = Guard(name="chat", policy=models())
    guard.before_call()
    guard.after_call(CallOutcome.ANSWERED, Usage(10, 5))

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        ModelEndpoint.objects.update(last_failure="of a summary that is never written")
        raise ZeroDivisionError

    assert ModelEndpoint.objects.get().tokens_in == 10
    assert ModelEndpoint.objects.get().last_failure == ""


def at_once(count: int, what: Callable[[], Any]) -> list[Any]:
    """What came of it in each of so many threads, each with a connection of its own, all let go at one moment."""
    barrier = threading.Barrier(count)
    results: list[Any] = []

    def run() -> None:
        try:
            connection.ensure_connection()
            barrier.wait()
            results.append(what())
        except ModelFailed as refused:
            results.append(refused.reason)
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.usefixtures("committed_db")
def test_of_all_that_come_at_once_when_the_pause_is_over_one_finds_out():
    clock = Clock()
    asking = Worker(models(breaker_failures=1, breaker_pause_seconds=60), clock)
    asking.fail(1)

    for _ in range(5):
        clock.forward((asking.row.open_until - clock()).total_seconds())
        results = at_once(8, asking.guard.before_call)

        assert (results.count(None), results.count("breaker_open")) == (1, 7)
        asking.guard.after_call(CallOutcome.UNREACHABLE, NOTHING)


@pytest.mark.usefixtures("committed_db")
def test_of_all_that_come_at_once_no_more_are_let_through_than_may_be_spent():
    clock = Clock()
    asking = Worker(models(spend_max_calls=11), clock)

    results = [result for _ in range(2) for result in at_once(8, asking.guard.before_call)]

    assert results.count(None) == 11
    assert results.count("spend_exhausted") == 5
    assert asking.row.window_calls == 11


@pytest.mark.usefixtures("committed_db")
def test_what_workers_note_at_once_is_all_counted():
    asking = Worker(models(breaker_failures=100), Clock())
    asking.call()

    at_once(8, lambda: [asking.call(CallOutcome.UNREACHABLE, Usage(3, 1)) for _ in range(10)])

    row = asking.row
    assert (row.calls, row.failures, row.consecutive_failures) == (81, 80, 80)
    assert (row.tokens_in, row.tokens_out, row.window_tokens) == (240, 80, 320)


@pytest.mark.usefixtures("committed_db")
def test_a_client_stops_asking_a_server_that_is_not_there():
    policy, clock = models(breaker_failures=4, model_attempts=3), Clock()
    client = guarded_client("chat", policy=policy, now=clock, sleep=lambda seconds: None)
    prompt = Prompt(system="Be brief.", user="Say nothing.")
    reasons = []

    for _ in range(4):
        with pytest.raises(ModelFailed) as failed:
            client.complete(prompt)
        reasons.append(str(failed.value.reason))

    assert reasons == ["unreachable", "breaker_open", "breaker_open", "breaker_open"]
    assert ModelEndpoint.objects.get().calls == 4
    ModelEndpoints(policy=policy, now=clock).reset_endpoint(name="chat")
    with pytest.raises(ModelFailed) as failed:
        client.complete(prompt)
    assert failed.value.reason is CallOutcome.UNREACHABLE

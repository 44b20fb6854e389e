"""A model that does not answer is left alone for a while, and what it may cost in a while is bounded."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from compaction.llm.guards import MAX_PAUSE_FACTOR, callable_models, limit_waits
from compaction.llm.types import CallOutcome, Usage
from tests.compaction.model_settings import NOTHING, Worker
from tests.statements import counted_statements

FAULTS = (CallOutcome.UNREACHABLE, CallOutcome.RATE_LIMITED, CallOutcome.DENIED)


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


@pytest.mark.parametrize("outcome", [CallOutcome.REFUSED, CallOutcome.BAD_ANSWER, CallOutcome.CONTEXT_LENGTH])
def test_a_probe_without_a_usable_answer_closes_the_breaker(worker, outcome):
    asking = worker(breaker_failures=2, breaker_pause_seconds=60)
    asking.fail(2)
    asking.clock.forward(60)

    for _ in range(3):
        asking.clock.forward(60)
        asking.call(outcome)
        assert asking.is_reachable()
        assert asking.row.open_until is None


def test_a_probe_that_fails_makes_the_pause_longer_up_to_a_bound(worker):
    asking = worker(breaker_failures=2, breaker_pause_seconds=60)
    asking.fail(2)
    pauses = []

    for _ in range(5):
        asking.clock.forward((asking.row.open_until - asking.clock()).total_seconds())
        asking.fail(1)
        pauses.append((asking.row.open_until - asking.clock()).total_seconds())

    assert pauses == [120, 240, 240, 240, 240]
    assert max(pauses) == MAX_PAUSE_FACTOR * 60


@pytest.mark.parametrize("seconds_back", [0, 86_400])
def test_pauses_and_windows_end_if_the_clock_was_set_back_and_no_others(worker, seconds_back):
    failing, spent = worker(breaker_failures=1), replace(worker(spend_max_calls=1), name="anthropic")
    failing.fail(1)
    spent.call()
    failing.clock.forward(-seconds_back)
    assert not failing.is_reachable() and not spent.is_reachable()

    limit_waits(policy=failing.policy, now=failing.clock())

    assert failing.is_reachable() == spent.is_reachable() == bool(seconds_back)


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

    logged = [record.msg for record in caplog.records if "model_left_alone" in str(record.msg)]
    assert [(each["model"], each["reason"]) for each in logged] == [("chat", "rate_limited"), ("chat", "unreachable")]


def test_an_answer_that_comes_late_closes_the_breaker_too(worker):
    asking = worker(breaker_failures=1)
    asking.guard.before_call()
    asking.fail(1)

    asking.guard.after_call(CallOutcome.ANSWERED, NOTHING)

    assert asking.is_reachable()


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

    for _ in range(5):
        asking.call(usage=Usage(10**9, 10**9))

    assert asking.is_reachable()

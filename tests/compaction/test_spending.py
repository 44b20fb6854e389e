"""What a model may cost in a while, in calls and in tokens."""

from __future__ import annotations

from datetime import timedelta

from compaction.llm.types import CallOutcome, Usage


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

"""What stands before a model is shared by all who ask it, whatever becomes of their own work, and however many come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from compaction.llm.guards import Guard
from compaction.llm.types import CallOutcome, ModelFailed, Usage
from compaction.models import ModelEndpoint
from tests.compaction.model_settings import NOTHING, Clock, Worker, models
from tests.conversations.appending import at_once


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


def refusals_of(count: int, what: Callable[[], Any]) -> list[Any]:
    """Why it was refused, or what came of it, in each of so many threads at one moment."""

    def run(worker: int) -> Any:
        try:
            return what()
        except ModelFailed as refused:
            return refused.reason

    return at_once(run, workers=count)


@pytest.mark.usefixtures("committed_db")
def test_of_all_that_come_at_once_when_the_pause_is_over_one_finds_out():
    clock = Clock()
    asking = Worker(models(breaker_failures=1, breaker_pause_seconds=60), clock)
    asking.fail(1)

    for _ in range(5):
        clock.forward((asking.row.open_until - clock()).total_seconds())
        results = refusals_of(8, asking.guard.before_call)

        assert (results.count(None), results.count("breaker_open")) == (1, 7)
        asking.guard.after_call(CallOutcome.UNREACHABLE, NOTHING)


@pytest.mark.usefixtures("committed_db")
def test_of_all_that_come_at_once_no_more_are_let_through_than_may_be_spent():
    clock = Clock()
    asking = Worker(models(spend_max_calls=11), clock)

    results = [result for _ in range(2) for result in refusals_of(8, asking.guard.before_call)]

    assert results.count(None) == 11
    assert results.count("spend_exhausted") == 5
    assert asking.row.window_calls == 11


@pytest.mark.usefixtures("committed_db")
def test_what_workers_note_at_once_is_all_counted():
    asking = Worker(models(breaker_failures=100), Clock())
    asking.call()

    refusals_of(8, lambda: [asking.call(CallOutcome.UNREACHABLE, Usage(3, 1)) for _ in range(10)])

    row = asking.row
    assert (row.calls, row.failures, row.consecutive_failures) == (81, 80, 80)
    assert (row.tokens_in, row.tokens_out, row.window_tokens) == (240, 80, 320)

"""Whatever happens to a conversation, in whatever order: nothing that LCM promises is broken after any step."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.flows.machine import Conversation

STEPS = 25


def profile(runs: int, **more: object) -> settings:
    return settings(
        max_examples=runs,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **more,  # type: ignore[arg-type]
    )


# The same runs each time, as long as nothing else changes. Where one fails, a shorter one is looked for, for minutes.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("runs", [1, pytest.param(12, marks=pytest.mark.thorough)])
def test_no_order_of_events_breaks_a_promise(committed_db, runs):
    run_state_machine_as_test(Conversation, settings=profile(runs, derandomize=True, database=None))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_order_of_events_breaks_a_promise_in_five_hundred_runs(committed_db):
    run_state_machine_as_test(Conversation, settings=profile(500, print_blob=True))

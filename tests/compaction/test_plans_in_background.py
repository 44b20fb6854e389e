"""A plan that is left to a worker waits in its own row, and is done once, or says why not."""

from __future__ import annotations

from contextlib import nullcontext

import pglock
import pytest

from compaction.models import CompactionPlan, CompactionRun
from compaction.plans.plan_store import CompactionPlans, PlanExecuted
from conversations.scope import Scope
from tests.factories import a_conversation, a_workspace

pytestmark = pytest.mark.django_db

TEXTS = [f"Message {number} about the harbour and its boats. " * 30 for number in range(16)]


@pytest.fixture
def plans() -> CompactionPlans:
    return CompactionPlans.from_settings(Scope(a_workspace().pk))


def a_plan(plans: CompactionPlans) -> str:
    return plans.plan(conversation_id=a_conversation(*TEXTS).conversation_id).plan_id


def test_a_request_waits_and_wakes_a_worker_who_carries_it_out_once(plans, wake_ups):
    plan_id = a_plan(plans)

    told = plans.request_execution(plan_id=plan_id)
    plans.execute_queued(plan_id=plan_id)
    plans.execute_queued(plan_id=plan_id)

    assert told.requested_at is not None and told.executed_at is None
    assert wake_ups == [(plan_id, 0.0)]
    assert CompactionRun.objects.get().run_id == plans.get_plan(plan_id=plan_id).run_id
    with pytest.raises(PlanExecuted):
        plans.request_execution(plan_id=plan_id)


def test_a_lost_wake_up_is_found_by_the_sweep(plans, wake_ups):
    waiting, _ = a_plan(plans), a_plan(plans)
    plans.request_execution(plan_id=waiting)
    wake_ups.clear()

    plans.sweep()

    assert wake_ups == [(waiting, 0.0)]


def test_while_another_compaction_is_at_work_the_plan_goes_on_waiting(plans, wake_ups, monkeypatch):
    plan_id = a_plan(plans)
    plans.request_execution(plan_id=plan_id)
    wake_ups.clear()

    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(pglock, "advisory", lambda *_, **__: nullcontext(enter_result=False))
        plans.execute_queued(plan_id=plan_id)

    assert [each for each, delay in wake_ups if delay > 0] == [plan_id]
    assert CompactionPlan.objects.waiting().get().plan_id == plan_id


def test_what_cannot_be_done_is_said_in_the_plan_and_can_be_asked_again(plans):
    plan_id = a_plan(plans)
    plans.engine.compact(conversation_id=CompactionPlan.objects.get(pk=plan_id).conversation_id)
    plans.request_execution(plan_id=plan_id)

    plans.execute_queued(plan_id=plan_id)

    assert plans.get_plan(plan_id=plan_id).refusal == "plan_outdated"
    assert not CompactionPlan.objects.waiting().exists()
    assert plans.request_execution(plan_id=plan_id).refusal == ""


def test_a_plan_made_while_compaction_is_off_waits_for_nothing(plans):
    plan_id = plans.plan(conversation_id=a_conversation(overrides={"enabled": False}).conversation_id).plan_id
    plans.request_execution(plan_id=plan_id)

    plans.execute_queued(plan_id=plan_id)

    assert plans.get_plan(plan_id=plan_id).refusal == "disabled"

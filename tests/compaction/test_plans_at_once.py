"""A plan in a database that commits: of several hands one carries it out, and one that fails on the way is spent."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from compaction.engine import CompactionEngine
from compaction.plans import plan_store
from compaction.plans.plan_store import CompactionPlans, PlanExecuted
from compaction.summarizing.extractive.extractive_summarizer import ExtractiveSummarizer
from compaction.summarizing.summarizer import SummaryDraft, SummaryRequest
from compaction.types import CompactionResult, Outcome
from conversations.errors import ConversationBusy
from conversations.models import Summary
from integrity.checker import IntegrityChecker
from tests.conversations.appending import at_once
from tests.factories import a_conversation
from tests.round_trip import assert_ledgers_survive


def a_planned_conversation() -> tuple[int, str]:
    texts = (f"Item {n}: " + f"we set port {5000 + n} for service-{n}. " * 15 for n in range(30))
    conversation_id = a_conversation(*texts, overrides={"leaf_chunk_tokens": 1000}).conversation_id
    return conversation_id, CompactionPlans.from_settings().plan(conversation_id=conversation_id).plan_id


def test_of_several_who_carry_it_out_at_once_one_does_and_the_others_learn_who(committed_db):
    conversation_id, plan_id = a_planned_conversation()
    plans = CompactionPlans.from_settings()

    def execute(worker: int) -> CompactionResult | PlanExecuted:
        while True:
            try:
                return plans.execute_plan(plan_id=plan_id)
            except ConversationBusy:
                time.sleep(0.02)
            except PlanExecuted as refusal:
                return refusal

    ended = at_once(execute, workers=4)

    done = [each for each in ended if isinstance(each, CompactionResult)]
    refused = [each for each in ended if isinstance(each, PlanExecuted)]
    assert (len(done), len(refused)) == (1, 3)
    assert {each.context["run_id"] for each in refused} == {done[0].run_id}
    assert Summary.objects.count() == len(done[0].details["steps_made"])
    assert IntegrityChecker.from_settings().run(conversation_id=conversation_id).is_clean
    assert_ledgers_survive()


def test_who_is_overtaken_on_the_way_to_the_lock_learns_of_it_there(committed_db, monkeypatch):
    _, plan_id = a_planned_conversation()
    plans, run = CompactionPlans.from_settings(), CompactionEngine.run

    def overtaken(engine: CompactionEngine, **given: Any) -> CompactionResult:
        patched.undo()
        plans.execute_plan(plan_id=plan_id)
        return run(engine, **given)

    with monkeypatch.context() as patched, pytest.raises(PlanExecuted) as refusal:
        patched.setattr(CompactionEngine, "run", overtaken)
        plans.execute_plan(plan_id=plan_id)

    assert refusal.value.context["run_id"] == plans.get_plan(plan_id=plan_id).run_id


@pytest.mark.parametrize("place", [0, 15], ids=["at the first step", "later"])
def test_a_plan_that_failed_on_the_way_is_spent_and_its_run_says_how_far_it_came(committed_db, monkeypatch, place):
    conversation_id, plan_id = a_planned_conversation()
    plans = CompactionPlans.from_settings()
    summarize = ExtractiveSummarizer.summarize

    def breaking(self: ExtractiveSummarizer, request: SummaryRequest) -> SummaryDraft:
        if any(f"service-{place}." in source.text for source in request.sources):
            raise RuntimeError("out of order")
        return summarize(self, request)

    with monkeypatch.context() as once, pytest.raises(RuntimeError):
        once.setattr(ExtractiveSummarizer, "summarize", breaking)
        plans.execute_plan(plan_id=plan_id)
    with pytest.raises(PlanExecuted) as refusal:
        plans.execute_plan(plan_id=plan_id)

    run = plans.engine.get_run(run_id=refusal.value.context["run_id"])
    made, left = run.details["steps_made"], run.details["steps_left"]
    assert run.outcome is Outcome.FAILED
    assert len(made) == Summary.objects.count()
    assert bool(made) == bool(place)
    assert len(made) + len(left) == plans.get_plan(plan_id=plan_id).step_count
    assert IntegrityChecker.from_settings().run(conversation_id=conversation_id).is_clean


@pytest.mark.parametrize("failing", ["pg_terminate_backend(pg_backend_pid())", "pg_sleep(9)"])
def test_a_queued_plan_that_meets_an_outage_stays_queued(committed_db, monkeypatch, failing):
    def fail(_: object) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 10")
            cursor.execute(f"SELECT {failing}")

    _, plan_id = a_planned_conversation()
    plans = CompactionPlans.from_settings()
    plans.request_execution(plan_id=plan_id)
    with monkeypatch.context() as outage, pytest.raises(OperationalError):
        outage.setattr(plan_store, "_require_unexecuted", fail)
        plans.execute_queued(plan_id=plan_id)
    plans.execute_queued(plan_id=plan_id)

    assert plans.get_plan(plan_id=plan_id).run_id is not None

"""A plan tells what a compaction would do and touches nothing; carried out, it is exactly that which is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.utils import timezone

from compaction.engine import CompactionEngine
from compaction.llm.configuration import ModelsPolicy
from compaction.models import CompactionRun, ModelEndpoint
from compaction.plans.execution import PlanOutdated
from compaction.plans.plan_store import CompactionPlans, PlanExecuted
from compaction.policy import CompactionPolicy
from compaction.summarizing.extractive.extractive_summarizer import ExtractiveSummarizer
from compaction.summarizing.extractive.telegraphic_summarizer import TelegraphicSummarizer
from compaction.summarizing.summarizer import Summarizer, SummaryDraft, SummaryRequest
from compaction.types import Outcome, PlanRecord
from conversations.errors import NotFound
from conversations.models import ContextItem, Summary
from conversations.sql import rows
from conversations.types import ConversationRecord, SummaryKind
from tests.compacting import a_talk
from tests.factories import a_conversation, a_store

pytestmark = pytest.mark.django_db

SETTINGS = {"leaf_chunk_tokens": 600, "leaf_target_tokens": 150, "condense_fan_in": 3}


def plans(models: ModelsPolicy | None = None, **settings: Any) -> CompactionPlans:
    engine = replace(CompactionEngine.from_settings(), policy=CompactionPolicy(**{**SETTINGS, **settings}))
    return CompactionPlans(engine=engine, models=models or ModelsPolicy())


def planned(conversation: ConversationRecord, **settings: Any) -> PlanRecord:
    return plans(**settings).plan(conversation_id=conversation.conversation_id)


def items_of(conversation: ConversationRecord) -> list[tuple[int, int | None, str | None]]:
    items = ContextItem.objects.filter(conversation_id=conversation.conversation_id).order_by("ordinal")
    return [(item.ordinal, item.message_id, item.summary_id) for item in items]


def every_row() -> dict[str, list[Any]]:
    """All that is stored, by table."""
    tables = {model._meta.db_table for model in apps.get_models() if model._meta.managed}
    return {table: rows(f"SELECT t::text FROM {table} t ORDER BY 1") for table in sorted(tables)}


def test_a_plan_touches_nothing_but_its_own_row():
    conversation = a_talk()
    before = every_row()

    plan = planned(conversation)

    after = every_row()
    assert len(after.pop("compaction_plans")) == 1
    before.pop("compaction_plans")
    assert after == before
    assert plan.step_count == len(plan.steps) > 0


def test_a_plan_carried_out_makes_the_very_summaries_that_were_planned_and_that_once():
    conversation = a_talk()
    plan = planned(conversation)

    result = plans().execute_plan(plan_id=plan.plan_id)

    after = items_of(conversation)
    made = {row.pk: (row.depth, row.first_seq, row.last_seq) for row in Summary.objects.all()}
    ranges = {step.number: (step.depth, step.first_seq, step.last_seq) for step in plan.steps}
    steps = {each["step"]: made[each["summary_id"]] for each in result.details["steps_made"]}
    skipped = {each["step"] for each in result.details["steps_skipped"]}
    assert result.outcome is Outcome.COMPACTED
    assert steps == {number: each for number, each in ranges.items() if number not in skipped}
    assert len(steps) == len(made)
    assert any(step.kind is SummaryKind.CONDENSED for step in plan.steps)
    run = CompactionRun.objects.get(pk=result.run_id)
    assert (run.outcome, run.details) == (Outcome.COMPACTED, result.details)
    assert (run.details["plan_id"], run.details["steps_left"]) == (plan.plan_id, [])

    with pytest.raises(PlanExecuted) as refusal:
        plans().execute_plan(plan_id=plan.plan_id)

    kept = plans().get_plan(plan_id=plan.plan_id)
    assert (refusal.value.code, refusal.value.context["run_id"]) == ("plan_executed", result.run_id)
    assert not refusal.value.retryable
    assert (kept.run_id, kept.executed_at is None) == (result.run_id, False)
    assert items_of(conversation) == after


def test_the_context_is_then_no_longer_than_was_expected():
    conversation = a_talk()
    plan = planned(conversation, condense_fan_in=100)

    result = plans(condense_fan_in=100).execute_plan(plan_id=plan.plan_id)

    after = a_store().get_conversation(conversation_id=conversation.conversation_id).counters
    assert (plan.messages_expected, plan.items_expected) == (after.active_messages, len(items_of(conversation)))
    assert result.tokens_after <= plan.tokens_expected < plan.tokens_before == result.tokens_before


def test_a_plan_does_what_a_compaction_would_have_done():
    by_plan, at_once = a_talk(), a_talk()
    plan = planned(by_plan, condense_fan_in=100)

    plans(condense_fan_in=100).execute_plan(plan_id=plan.plan_id)
    plans(condense_fan_in=100).engine.compact(conversation_id=at_once.conversation_id)

    texts = [
        [each.content for each in Summary.objects.filter(conversation_id=talk.conversation_id).order_by("first_seq")]
        for talk in (by_plan, at_once)
    ]
    assert len(texts[0]) > 1
    assert texts[0] == texts[1]


def test_a_plan_takes_in_summaries_that_are_there_with_all_that_they_stand_for():
    conversation = a_talk()
    plans(condense_fan_in=100).engine.compact(conversation_id=conversation.conversation_id)

    plan = planned(conversation, condense_fan_in=4)
    plans(condense_fan_in=4).execute_plan(plan_id=plan.plan_id)

    assert {step.kind for step in plan.steps} == {SummaryKind.CONDENSED}
    first = Summary.objects.get(depth=1, first_seq=1)
    assert (plan.steps[0].depth, plan.steps[0].from_steps) == (1, ())
    assert [(each.first_seq, each.last_seq) for each in plan.steps[0].ranges] == [(1, first.last_seq)]


def test_a_context_that_was_compacted_since_is_told_and_left_alone():
    conversation = a_talk()
    plan = planned(conversation)
    plans().engine.compact(conversation_id=conversation.conversation_id)
    before = items_of(conversation)

    with pytest.raises(PlanOutdated) as refusal:
        plans().execute_plan(plan_id=plan.plan_id)

    context = refusal.value.context
    changes = {item["ordinal"]: item for item in context["items"]}
    assert (refusal.value.code, refusal.value.retryable) == ("plan_outdated", False)
    assert (changes[1]["change"], changes[1]["now"]) == ("replaced", before[0][2])
    assert (changes[2]["change"], changes[2]["now"]) == ("gone", None)
    assert context["items_changed"] == sum(step.item_count for step in plan.steps if step.depth == 0)
    assert len(context["items"]) == 20
    assert items_of(conversation) == before
    assert plans().get_plan(plan_id=plan.plan_id).executed_at is None


def test_compaction_switched_off_since_is_a_setting_that_changed():
    conversation = a_talk()
    plan = planned(conversation)
    a_store().configure_conversation(conversation_id=conversation.conversation_id, overrides={"enabled": False})

    with pytest.raises(PlanOutdated, match="enabled True to False") as refusal:
        plans().execute_plan(plan_id=plan.plan_id)

    assert refusal.value.context["items"] == []


@pytest.mark.parametrize(("enabled", "outcome"), [(False, Outcome.DISABLED), (True, Outcome.NOTHING_TO_DO)])
def test_a_plan_without_steps_can_be_carried_out_and_does_nothing(enabled, outcome):
    conversation = a_conversation("hello") if enabled else a_talk(overrides={"enabled": False})

    plan = planned(conversation)
    result = plans().execute_plan(plan_id=plan.plan_id)

    assert (plan.steps, plan.tokens_expected, result.outcome) == ((), plan.tokens_before, outcome)
    assert plans().get_plan(plan_id=plan.plan_id).run_id == result.run_id


def test_a_step_that_cannot_be_made_is_reported_and_so_is_what_hangs_on_it(monkeypatch):
    def wordy(summarize: Callable[..., SummaryDraft]) -> Callable[..., SummaryDraft]:
        """Put a source that holds a certain word at more length than it is."""

        def answer(self: Summarizer, request: SummaryRequest) -> SummaryDraft:
            texts = " ".join(source.text for source in request.sources)
            return SummaryDraft(text=texts * 2, model="wordy") if "service-2." in texts else summarize(self, request)

        return answer

    conversation = a_talk()
    plan = planned(conversation)
    lost = next(step for step in plan.steps if step.first_seq <= 3 <= step.last_seq)
    dependent = next(step for step in plan.steps if lost.number in step.from_steps)

    for each in (ExtractiveSummarizer, TelegraphicSummarizer):
        monkeypatch.setattr(each, "summarize", wordy(each.summarize))

    result = plans().execute_plan(plan_id=plan.plan_id)

    skipped = {each["step"]: each["why"] for each in result.details["steps_skipped"]}
    assert skipped[lost.number] == "no summary of it would have been cheaper than what it stands for"
    assert skipped[dependent.number] == f"step {lost.number}, whose summary it takes, made none"
    assert len(result.details["steps_made"]) == len(plan.steps) - len(skipped)
    assert {ordinal for ordinal, message, _ in items_of(conversation) if message} >= set(
        range(lost.first_seq, lost.last_seq + 1)
    )


def test_a_run_that_a_bound_stops_says_which_steps_are_left():
    conversation = a_talk()
    plan = planned(conversation)

    result = plans(max_passes=2).execute_plan(plan_id=plan.plan_id)

    assert result.outcome is Outcome.STOPPED
    assert [each["step"] for each in result.details["steps_made"]] == [1, 2]
    assert result.details["steps_left"] == [step.number for step in plan.steps[2:]]


def test_a_plan_prices_the_model_that_would_be_called_and_tells_what_the_others_would_cost():
    conversation = a_talk(overrides={})
    models = ModelsPolicy(
        chat_url="http://127.0.0.1:9/v1",
        chat_model="m-1",
        chat_prices="2.0/10.0",
        anthropic_model="m-2",
        anthropic_key="k",
        anthropic_prices="1.0/5.0",
    )
    service = plans(models, summarizer="chat,anthropic,extractive")
    before = service.plan(conversation_id=conversation.conversation_id)
    ModelEndpoint.objects.create(name="chat", open_until=timezone.now() + timedelta(hours=1))

    plan = service.plan(conversation_id=conversation.conversation_id)

    assert (before.summarizer, plan.summarizer, plan.model) == ("chat", "anthropic", "m-2")
    assert plan.calls == before.calls == plan.step_count
    assert plan.cost == pytest.approx(before.cost / 2)
    assert [(each.summarizer, each.model) for each in plan.otherwise] == [("chat", "m-1"), ("extractive", None)]
    assert [each.cost for each in plan.otherwise] == [before.cost, 0.0]
    assert service.get_plan(plan_id=plan.plan_id) == plan


def test_where_no_model_can_be_asked_a_plan_costs_nothing_and_says_who_does_the_work():
    conversation = a_talk(overrides={})
    models = ModelsPolicy(chat_url="http://127.0.0.1:9/v1", chat_model="m-1", chat_prices="2.0/10.0")
    ModelEndpoint.objects.create(name="chat", open_until=timezone.now() + timedelta(hours=1))

    plan = plans(models, summarizer="chat").plan(conversation_id=conversation.conversation_id)

    assert (plan.summarizer, plan.model, plan.calls, plan.cost) == ("telegraphic", None, 0, 0.0)
    assert plan.otherwise[0].cost > 0


@pytest.mark.parametrize("plan_id", ["plan_0000000000000000", "", "\x00", "run_1"])
def test_an_unknown_plan_is_not_there(plan_id):
    for ask in (plans().get_plan, plans().execute_plan):
        with pytest.raises(NotFound):
            ask(plan_id=plan_id)

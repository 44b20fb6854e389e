"""What a run says of tokens is about the context that it read, whatever is appended beside it."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from compaction.background.statistics import CompactionActivity
from compaction.engine import CompactionEngine
from compaction.models import CompactionPlan, CompactionRun
from compaction.plans.plan_store import CompactionPlans
from compaction.redo import redo
from compaction.run import Run
from compaction.types import CompactionResult, Outcome, Reason
from conversations.models import ContextItem, Conversation, Message
from tests.compaction.test_redo import compacted_without_a_model, engine, model  # noqa: F401
from tests.factories import a_conversation, say
from tests.round_trip import assert_ledgers_survive

pytestmark = pytest.mark.django_db

LONG = "We set port 5433 for service-7, as was agreed. " * 12


def append(conversation_id: int, count: int) -> None:
    say(conversation_id, *(f"{LONG} {n}" for n in range(count)))


def compacted_beside_an_append(conversation_id: int, *, appended_before: int, appended_after: int) -> CompactionResult:
    """Messages come in after the lock was taken, before the context is read; and more while it is compacted."""

    def work(run: Run) -> Outcome:
        append(conversation_id, appended_before)
        context = run.read_context
        run.read_context = lambda: (context(), append(conversation_id, appended_after))[0]  # type: ignore[method-assign]
        return run.compact()

    return CompactionEngine.from_settings().run(conversation_id=conversation_id, reason=Reason.MANUAL, work=work)


def test_a_run_beside_appends_says_what_the_context_cost_that_it_read():
    conversation_id = a_conversation(*(f"{LONG} {n}" for n in range(9))).conversation_id

    result = compacted_beside_an_append(conversation_id, appended_before=20, appended_after=5)

    items = ContextItem.objects.filter(conversation_id=conversation_id)
    newest = Message.objects.filter(conversation_id=conversation_id, seq__gt=29)
    came_later = sum(items.filter(message__in=newest).values_list("token_count", flat=True))
    assert (newest.count(), result.outcome) == (5, Outcome.COMPACTED)
    assert 0 <= result.tokens_after < result.tokens_before
    assert result.tokens_after == sum(items.values_list("token_count", flat=True)) - came_later
    [run] = CompactionRun.objects.filter(conversation_id=conversation_id)
    assert (run.tokens_before, run.tokens_after) == (result.tokens_before, result.tokens_after)
    assert_ledgers_survive()


def test_a_run_that_makes_summaries_again_starts_from_the_context_that_it_reads(engine, model):  # noqa: F811
    conversation_id = compacted_without_a_model(engine, model, 16)

    def beside(run: Run) -> Outcome:
        append(conversation_id, 20)
        return redo(run)

    result = engine.run(conversation_id=conversation_id, reason=Reason.REDO, work=beside)

    assert result.redone_summaries
    assert result.tokens_after == Conversation.objects.get(pk=conversation_id).active_tokens


def test_a_plan_carried_out_beside_appends_adds_up():
    conversation_id = a_conversation(*(f"{LONG} {n}" for n in range(30))).conversation_id
    plans = CompactionPlans.from_settings()
    plan = plans.plan(conversation_id=conversation_id)
    append(conversation_id, 3)

    result = plans.execute_plan(plan_id=plan.plan_id)

    assert result.tokens_after == Conversation.objects.get(pk=conversation_id).active_tokens
    assert 0 <= plan.tokens_expected <= plan.tokens_before < result.tokens_before


def a_run(before: int, after: int, *, redone: int = 0) -> CompactionRun:
    return CompactionRun.objects.create(
        run_id=f"run_{before}_{after}_{redone}",
        conversation_id=a_conversation("one").conversation_id,
        reason=Reason.MANUAL,
        outcome=Outcome.COMPACTED,
        started_at=timezone.now(),
        finished_at=timezone.now(),
        tokens_before=before,
        tokens_after=after,
        redone_summaries=redone,
    )


@pytest.mark.parametrize(("before", "after"), [(10, -1), (-1, -1), (10, 11)])
def test_the_database_refuses_a_run_that_does_not_add_up(before, after):
    with pytest.raises(IntegrityError, match="compaction_runs_add_up"), transaction.atomic():
        a_run(before, after)


def test_a_summary_that_is_made_again_may_be_longer_and_frees_nothing():
    a_run(10, 14, redone=1)
    a_run(10, 4)

    [ran] = CompactionActivity.from_settings().activity().runs

    assert (ran.runs, ran.tokens_freed) == (2, 6)


def test_the_database_refuses_a_plan_that_does_not_add_up():
    conversation_id = a_conversation(*(f"{LONG} {n}" for n in range(30))).conversation_id
    plan_id = CompactionPlans.from_settings().plan(conversation_id=conversation_id).plan_id

    for expected in (-1, 10**6):
        with pytest.raises(IntegrityError, match="compaction_plans_add_up"), transaction.atomic():
            CompactionPlan.objects.filter(pk=plan_id).update(tokens_expected=expected)

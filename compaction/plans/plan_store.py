"""Store plans of what a compaction would do, and execute exactly their steps."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone
from pydantic import TypeAdapter

from compaction.engine import CompactionEngine
from compaction.llm.configuration import MODELS, ModelsPolicy, chain_of
from compaction.llm.guards import callable_models
from compaction.models import CompactionPlan
from compaction.planning.forecast import Estimate, Forecast, PlannedStep, estimate, forecast
from compaction.planning.planner import Slot, sum_tokens
from compaction.plans.execution import PlanExecution, context_hash, settings_in_force
from compaction.policy import CompactionPolicy
from compaction.run import Run
from compaction.sources import read_slots
from compaction.types import CompactionResult, Outcome, PlanAlternative, PlanOutline, PlanRecord, Reason
from conversations.errors import Conflict, ConversationBusy
from conversations.models import Conversation
from conversations.models.columns import record_of
from conversations.scope import EVERYTHING, Scope
from conversations.sql import snapshot
from conversations.store.pages import newest_first
from conversations.work import queue
from conversations.work.queue import BUSY_DELAY_SECONDS

# Reads the steps of a plan from its row.
_STEPS = TypeAdapter(tuple[PlannedStep, ...]).validate_python


class PlanExecuted(Conflict):
    """The plan was already executed; it can run only once."""

    code = "plan_executed"


@dataclass(frozen=True)
class CompactionPlans:
    """Makes, stores and executes plans of compactions."""

    engine: CompactionEngine
    models: ModelsPolicy

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> CompactionPlans:
        return cls(engine=CompactionEngine.from_settings(scope), models=ModelsPolicy.from_settings())

    @property
    def scope(self) -> Scope:
        return self.engine.store.scope

    def plan(self, *, conversation_id: int) -> PlanRecord:
        """Plan what a manual compaction would do now; nothing is compacted.

        The sizes of the context afterwards are estimates: a summary may be shorter than its target. The plan has no
        steps if compaction is switched off for the conversation, or if there is nothing to compact. Raises NotFound.
        """
        with snapshot():
            conversation = self.scope.conversation(conversation_id)
            slots = read_slots(conversation_id)
        policy = self.engine.policy.overridden(conversation.overrides)
        # If compaction is switched off, no run would take a step.
        bounds = policy if policy.enabled else replace(policy, max_passes=0)
        plan = self._plan_of(conversation, slots, policy, forecast(slots, bounds))
        plan.save(force_insert=True)
        return _record(plan)

    def get_plan(self, *, plan_id: str) -> PlanRecord:
        """Return one compaction plan with its steps; raises NotFound."""
        return _record(self._find(plan_id))

    def list_plans(self, *, conversation_id: int, before_plan: str | None = None, limit: int = 20) -> list[PlanOutline]:
        """List a conversation's compaction plans, newest first, without their steps.

        Raises NotFound if there is no such conversation.
        """
        self.scope.conversation(conversation_id)
        plans = CompactionPlan.objects.filter(conversation_id=conversation_id).defer("steps", "policy")
        return [_outline(plan) for plan in newest_first(plans, before_plan, self._find)[:limit]]

    def execute_plan(self, *, plan_id: str) -> CompactionResult:
        """Execute a compaction plan, once; a step that is not possible is skipped.

        The result says why steps were skipped. Raises NotFound; PlanOutdated if context items of the plan or settings
        have changed (messages appended since do not matter); PlanExecuted if the plan was already executed;
        ConversationBusy, retryable, while another compaction of the conversation is in progress.
        """
        plan = self._find(plan_id)
        execution = PlanExecution(
            plan_id=plan_id, last_seq=plan.last_seq, settings=plan.policy, plan=_STEPS(plan.steps)
        )
        _require_unexecuted(plan)
        result = self.engine.run(
            conversation_id=plan.conversation_id, reason=Reason.MANUAL, work=partial(_follow_plan, execution=execution)
        )
        if result.outcome is Outcome.DISABLED and execution.plan:
            conversation = self.scope.conversation(plan.conversation_id)
            slots = read_slots(plan.conversation_id)
            execution.require_unchanged(slots, self.engine.policy.overridden(conversation.overrides))
        return result

    def request_execution(self, *, plan_id: str) -> PlanOutline:
        """Queue the execution of a plan by a worker.

        The plan then records when it began and by which run, or why it was refused. Raises Conflict `plan_executed` if
        it was begun already.
        """
        plan = self._find(plan_id)
        _require_unexecuted(plan)
        # The reason of an earlier refusal may be gone.
        plan.requested_at, plan.refusal = timezone.now(), ""
        plan.save(update_fields=["requested_at", "refusal"])
        _wake(plan_id)
        return _outline(plan)

    def execute_queued(self, *, plan_id: str) -> None:
        """Execute a queued plan in a worker, or store the code of the refusal.

        While another compaction of the conversation is in progress, the plan stays queued.
        """
        waiting = CompactionPlan.objects.waiting().filter(plan_id=plan_id)
        if not waiting.exists():
            return
        try:
            if self.execute_plan(plan_id=plan_id).outcome is Outcome.DISABLED:
                waiting.update(refusal=Outcome.DISABLED)
        except ConversationBusy:
            _wake(plan_id, BUSY_DELAY_SECONDS)
        except Conflict as refusal:
            waiting.update(refusal=refusal.code)
        except (InterfaceError, OperationalError):
            # Such as an outage: the plan stays queued, and the sweep wakes a worker again.
            raise
        except Exception as failure:
            # Only the type of the error: its message may quote a stored text.
            waiting.update(refusal=type(failure).__name__)
            raise

    def sweep(self) -> None:
        """Wake a worker for every queued plan, such as one whose wake-up was lost."""
        for plan_id in CompactionPlan.objects.waiting().order_by("requested_at").values_list("plan_id", flat=True):
            _wake(plan_id)

    def _find(self, plan_id: str) -> CompactionPlan:
        return self.scope.find(CompactionPlan.objects.all(), "plan", plan_id, pk=plan_id)

    def _plan_of(
        self, conversation: Conversation, slots: Sequence[Slot], policy: CompactionPolicy, expected: Forecast
    ) -> CompactionPlan:
        chain = chain_of(policy.summarizer)
        summarizer = self._callable_now(chain)
        takes = self._estimate(summarizer, expected.steps)
        settings = settings_in_force(policy)
        return CompactionPlan(
            plan_id=f"plan_{secrets.token_hex(8)}",
            conversation=conversation,
            created_at=timezone.now(),
            last_seq=conversation.next_seq - 1,
            tokens_before=sum_tokens(slots),
            tokens_expected=expected.tokens,
            context_hash=context_hash(expected.steps, settings),
            summarizer=summarizer,
            policy=settings,
            steps=[asdict(each) for each in expected.steps],
            figures={
                "messages_before": sum(slot.is_raw for slot in slots),
                "items_before": len(slots),
                "messages_expected": expected.messages,
                "items_expected": expected.items,
                "step_count": len(expected.steps),
                "model": self._model(summarizer),
                "otherwise": [
                    asdict(PlanAlternative(each, self._model(each), self._estimate(each, expected.steps).cost))
                    for each in chain
                    if each != summarizer
                ],
                **asdict(takes),
            },
        )

    def _callable_now(self, chain: Sequence[str]) -> str:
        """Return the first summarizer that can be called now, or the last resort."""
        models = callable_models(chain, policy=self.models)
        able = (name for name in chain if name in models or name not in MODELS)
        return next(able, self.engine.escalation.last_resort.name)

    def _model(self, name: str) -> str | None:
        return self.models.model(name) or None if name in MODELS else None

    def _estimate(self, name: str, steps: Sequence[PlannedStep]) -> Estimate:
        calls_model = name in MODELS
        return estimate(steps, calls_model=calls_model, prices=self.models.prices(name) if calls_model else None)


def _wake(plan_id: str, delay_seconds: float = 0.0) -> None:
    queue.wake("compaction.tasks.carry_out_plan", plan_id=plan_id, delay_seconds=delay_seconds)


def _follow_plan(run: Run, execution: PlanExecution) -> Outcome:
    """Follow the plan; the conversation's lock is held."""
    slots = run.read_context()
    _require_unexecuted(CompactionPlan.objects.get(pk=execution.plan_id))
    execution.require_unchanged(slots, run.policy)
    run.details = execution.details
    with transaction.atomic():
        # Recorded before the first summary: if the process dies, the plan's row shows that it began, and in which run.
        run.record(Outcome.RUNNING)
        CompactionPlan.objects.filter(pk=execution.plan_id).update(executed_at=timezone.now(), run_id=run.row.run_id)
    return run.outcome_when_done if run.follow(execution.steps(slots, run.policy)) else Outcome.STOPPED


def _require_unexecuted(plan: CompactionPlan) -> None:
    if plan.executed_at is not None:
        raise PlanExecuted(
            f"Plan {plan.plan_id} was carried out already, by {plan.run_id}.", plan_id=plan.plan_id, run_id=plan.run_id
        )


def _outline(plan: CompactionPlan) -> PlanOutline:
    alternatives = tuple(PlanAlternative(**each) for each in plan.figures.get("otherwise", ()))
    return record_of(PlanOutline, plan, **{**plan.figures, "otherwise": alternatives})


def _record(plan: CompactionPlan) -> PlanRecord:
    steps = tuple(each.step for each in _STEPS(plan.steps))
    return PlanRecord(**vars(_outline(plan)), context_hash=plan.context_hash, steps=steps)

"""Compaction plans: what a compaction would do, and its execution."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from compaction.types import PlanRecord, RunRecord
from conversations.errors import NotFound
from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.pager import paged
from lcmsite.types import KeyScope

ON_A_PAGE = 20


@page()
def plans(visit: Visit, conversation_id: int) -> HttpResponse:
    """The plans of a conversation, newest first."""
    before = visit.request.GET.get("before") or None
    conversation = visit.ask("lcm_show", conversation_id=conversation_id)
    found = visit.ask("lcm_plans", conversation_id=conversation_id, before_plan=before, limit=ON_A_PAGE + 1)
    return visit.show(
        "dashboard/plan.html",
        conversation=conversation,
        may_plan=visit.may("lcm_plan"),
        paged=paged(found, most=ON_A_PAGE, key="plan_id", before=before),
    )


@page(KeyScope.WRITE, methods=("POST",))
def make(visit: Visit, conversation_id: int) -> HttpResponse:
    """Make a plan."""
    plan = visit.ask("lcm_plan", conversation_id=conversation_id)
    return visit.redirect("plan", conversation_id=conversation_id, plan_id=plan.plan_id)


@page()
def plan(visit: Visit, conversation_id: int, plan_id: str) -> HttpResponse:
    """One plan with its steps and progress."""
    return visit.show(
        "dashboard/plan.html",
        conversation=visit.ask("lcm_show", conversation_id=conversation_id),
        **_progress(visit, conversation_id, plan_id),
    )


@page(KeyScope.WRITE, methods=("POST",))
def execute(visit: Visit, conversation_id: int, plan_id: str) -> HttpResponse:
    """Execute the plan in the background; `progress` shows how far it is."""
    _of(visit, conversation_id, plan_id)
    visit.ask("lcm_execute_plan", plan_id=plan_id, background=True)
    if visit.is_part:
        return visit.show("dashboard/_plan_progress.html", **_progress(visit, conversation_id, plan_id))
    return visit.redirect("plan", conversation_id=conversation_id, plan_id=plan_id)


@page()
def progress(visit: Visit, conversation_id: int, plan_id: str) -> HttpResponse:
    """The progress of an execution."""
    return visit.show("dashboard/_plan_progress.html", **_progress(visit, conversation_id, plan_id))


def _of(visit: Visit, conversation_id: int, plan_id: str) -> PlanRecord:
    plan: PlanRecord = visit.ask("lcm_show_plan", plan_id=plan_id)
    if plan.conversation_id != conversation_id:
        raise NotFound(f"There is no plan {plan_id[:80]!r} of this conversation.")
    return plan


def _progress(visit: Visit, conversation_id: int, plan_id: str) -> dict[str, Any]:
    plan = _of(visit, conversation_id, plan_id)
    run: RunRecord | None = visit.ask("lcm_run", run_id=plan.run_id) if plan.run_id else None
    return {
        "plan": plan,
        "run": run,
        "made": run.leaf_summaries + run.condensed_summaries if run else 0,
        "is_under_way": (plan.requested_at and not plan.refusal and not plan.executed_at)
        or (run is not None and run.finished_at is None),
        "conversation_id": conversation_id,
        "may_plan": visit.may("lcm_plan"),
    }

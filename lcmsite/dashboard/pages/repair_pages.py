"""Repair plans: read each step, then approve, apply and undo, as an admin."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.paginator import Paginator
from django.http import HttpResponse

from conversations.errors import Invalid
from conversations.humanize import counted
from integrity.types import PlanState, RepairPlanRecord, Risk, StepRecord, StepState
from lcmsite.catalogue.problems import Problem
from lcmsite.dashboard.visit import POST, Visit, choices_in, page, text_in
from lcmsite.types import KeyScope

ON_A_PAGE = 25
# Audit entries shown in the history of a plan.
MOST_ACTS = 500

_OPEN = (PlanState.PROPOSED, PlanState.APPROVED)


def _show_plan(visit: Visit, problem: Problem | None = None, *, repair_id: str) -> HttpResponse:
    """The plan, with the problem if there is one."""
    plan: RepairPlanRecord = visit.call("lcm_repairs", repair_id=repair_id)
    approved = _steps_in(plan, StepState.APPROVED)
    return visit.show(
        "trust/repairs.html",
        plan=plan,
        refusal=problem,
        steps=Paginator(plan.steps, ON_A_PAGE).get_page(visit.request.GET.get("page")),
        is_open=plan.state in _OPEN,
        approved=approved,
        words=_confirmation_for(plan),
        lasting=[step for step in _steps_in(plan, StepState.APPLIED) if not step.reversible],
        stale=_steps_in(plan, StepState.STALE),
        unsaid=len(plan.steps) - len(approved) - len(_steps_in(plan, StepState.REFUSED)),
        conversations=sorted({step.conversation_id for step in plan.steps if step.conversation_id is not None}),
    )


@page(KeyScope.WRITE, POST)
def plan(visit: Visit, report_id: str) -> HttpResponse:
    """Make a repair plan for a report; no stored data is changed."""
    ledger = text_in(visit.request.POST, "ledger_file_id") or None
    made = visit.call("lcm_plan_repairs", report_id=report_id, ledger_file_id=ledger)
    return visit.redirect("repairs", repair_id=made.repair_id)


@page()
def plans(visit: Visit) -> HttpResponse:
    """The plans of the workspace, newest first, filtered by state."""
    filters = choices_in(visit.request.GET, state=PlanState)
    return visit.show(
        "trust/repair_plans.html",
        paged=visit.list_page("lcm_repair_plans", limit=ON_A_PAGE, filters=filters, **filters),
        filters=filters,
        states=list(PlanState),
    )


@page()
def repairs(visit: Visit, repair_id: str) -> HttpResponse:
    """A plan with its steps, their before and after, and their state."""
    return _show_plan(visit, repair_id=repair_id)


@page(KeyScope.ADMIN, POST, on_refusal=_show_plan)
def approve(visit: Visit, repair_id: str) -> HttpResponse:
    """Approve or refuse steps; nothing is changed yet."""
    given = visit.request.POST
    ordinals = [int(each) for each in given.getlist("ordinals") if each.isascii() and each.isdigit() and len(each) < 16]
    if given.get("do") == "all":
        steps = visit.call("lcm_repairs", repair_id=repair_id).steps
        ordinals = [step.ordinal for step in steps if step.state is not StepState.REFUSED]
    if not ordinals:
        raise Invalid("Choose at least one step.", code="nothing_chosen")
    is_no = given.get("do") == "refuse"
    visit.call(
        "lcm_approve_repairs",
        repair_id=repair_id,
        ordinals=[] if is_no else ordinals,
        refused=ordinals if is_no else None,
    )
    decided = f"{counted(len(ordinals), 'step')} {'refused' if is_no else 'approved'}."
    return visit.redirect("repairs", done=f"{decided} Nothing has been changed yet.", repair_id=repair_id)


@page(KeyScope.ADMIN, POST, on_refusal=_show_plan)
def apply(visit: Visit, repair_id: str) -> HttpResponse:
    """Apply the approved steps; risky ones need a typed confirmation."""
    words = _confirmation_for(visit.call("lcm_repairs", repair_id=repair_id))
    if words and text_in(visit.request.POST, "confirmation") != words:
        raise Invalid(f"Nothing was changed: to confirm, type “{words}”.", code="not_confirmed")
    plan: RepairPlanRecord = visit.call("lcm_apply_repairs", repair_id=repair_id)
    done = "The approved steps were applied." if plan.state is PlanState.APPLIED else ""
    return visit.redirect("repairs", done=done, repair_id=repair_id)


@page(KeyScope.ADMIN, POST, on_refusal=_show_plan)
def undo(visit: Visit, repair_id: str) -> HttpResponse:
    """Undo the plan and restore the previous state exactly, or change nothing."""
    visit.call("lcm_undo_repairs", repair_id=repair_id)
    done = "The plan was undone: the previous state is restored."
    return visit.redirect("repairs", done=done, repair_id=repair_id)


@page(KeyScope.ADMIN)
def history(visit: Visit, repair_id: str) -> HttpResponse:
    return visit.show("trust/_acts.html", acts=visit.call("lcm_audit", target=repair_id, limit=MOST_ACTS))


def _confirmation_for(plan: RepairPlanRecord) -> str:
    """The confirmation to type; empty if no approved step is risky or irreversible."""
    approved = _steps_in(plan, StepState.APPROVED)
    is_grave = any(step.risk is Risk.HIGH or not step.reversible for step in approved)
    return f"apply {counted(len(approved), 'step')}" if is_grave else ""


def _steps_in(plan: RepairPlanRecord, state: StepState) -> Sequence[StepRecord]:
    return [step for step in plan.steps if step.state is state]

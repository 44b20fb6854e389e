"""What could be done about a report: each step to be read, then approved, carried out and taken back by an admin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from conversations.errors import Invalid, LcmError
from conversations.humanize import counted
from integrity.types import PlanState, RepairPlanRecord, Risk, StepRecord, StepState
from lcmsite.catalogue.problems import Problem, problem_of
from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.addresses import number_in
from lcmsite.dashboard.service import ask, may
from lcmsite.dashboard.trust.differences import difference
from lcmsite.dashboard.trust.explanations import deed_of
from lcmsite.types import KeyScope

ON_A_PAGE = 25
# So many of the newest acts upon a plan are told.
MOST_ACTS = 500

_OPEN = (PlanState.PROPOSED, PlanState.APPROVED)


@page(KeyScope.WRITE, methods=("POST",))
def plan(visit: Visit, report_id: str) -> HttpResponse:
    """Make a plan against a report; nothing is touched."""
    ledger = visit.request.POST.get("ledger_file_id", "").strip() or None
    made = ask(visit.caller, "lcm_plan_repairs", report_id=report_id, ledger_file_id=ledger)
    return redirect("repairs", workspace=visit.workspace.name, repair_id=made.repair_id)


@page()
def repairs(visit: Visit, repair_id: str) -> HttpResponse:
    """A plan: its steps with their before and after, and what became of them."""
    return _shown(visit, ask(visit.caller, "lcm_repairs", repair_id=repair_id))


@page(KeyScope.ADMIN, methods=("POST",))
def approve(visit: Visit, repair_id: str) -> HttpResponse:
    """Say which steps may be carried out, and which must not; nothing is done yet."""
    given = visit.request.POST
    ordinals = [int(each) for each in given.getlist("ordinals") if each.isascii() and each.isdigit()]
    try:
        if given.get("do") == "all":
            steps = ask(visit.caller, "lcm_repairs", repair_id=repair_id).steps
            ordinals = [step.ordinal for step in steps if step.state is not StepState.REFUSED]
        if not ordinals:
            raise Invalid("No step was chosen.", code="nothing_chosen")
        is_no = given.get("do") == "refuse"
        chosen = {"ordinals": [], "refused": ordinals} if is_no else {"ordinals": ordinals}
        ask(visit.caller, "lcm_approve_repairs", repair_id=repair_id, **chosen)
    except LcmError as refusal:
        return _told(visit, repair_id, refusal)
    done = "refused" if is_no else "approved"
    messages.success(visit.request, f"{counted(len(ordinals), 'step')} {done}. Nothing has been done yet.")
    return _back(visit, repair_id)


@page(KeyScope.ADMIN, methods=("POST",))
def apply(visit: Visit, repair_id: str) -> HttpResponse:
    """Carry out what is approved, once it was said in words where that matters."""
    try:
        words = _words_for(ask(visit.caller, "lcm_repairs", repair_id=repair_id))
        if words and visit.request.POST.get("confirmation", "").strip() != words:
            raise Invalid(f"Nothing was done: to go on, type “{words}”, letter by letter.", code="not_confirmed")
        done: RepairPlanRecord = ask(visit.caller, "lcm_apply_repairs", repair_id=repair_id)
    except LcmError as refusal:
        return _told(visit, repair_id, refusal)
    if done.state is PlanState.APPLIED:
        messages.success(visit.request, "The approved steps were carried out.")
    return _back(visit, repair_id)


@page(KeyScope.ADMIN, methods=("POST",))
def undo(visit: Visit, repair_id: str) -> HttpResponse:
    """Put back what stood there before, exactly, or nothing of it."""
    try:
        ask(visit.caller, "lcm_undo_repairs", repair_id=repair_id)
    except LcmError as refusal:
        return _told(visit, repair_id, refusal)
    messages.success(visit.request, "All of it was taken back: what stood there before stands there again.")
    return _back(visit, repair_id)


@page(KeyScope.ADMIN)
def history(visit: Visit, repair_id: str) -> HttpResponse:
    """Who did what with a plan, as the audit log has it."""
    acts = ask(visit.caller, "lcm_audit", target=repair_id, limit=MOST_ACTS)
    return visit.show("dashboard/trust/_acts.html", acts=acts)


def _back(visit: Visit, repair_id: str) -> HttpResponse:
    return redirect("repairs", workspace=visit.workspace.name, repair_id=repair_id)


def _told(visit: Visit, repair_id: str, refusal: LcmError) -> HttpResponse:
    """The plan as it is, under the word of what went wrong; the word alone if there is no such plan."""
    return _shown(visit, ask(visit.caller, "lcm_repairs", repair_id=repair_id), problem_of(refusal))


def _shown(visit: Visit, plan: RepairPlanRecord, problem: Problem | None = None) -> HttpResponse:
    last = max(1, -(-len(plan.steps) // ON_A_PAGE))
    at = min(max(number_in(visit.request.GET, "page") or 1, 1), last)
    approved = _in(plan, StepState.APPROVED)
    return visit.show(
        "dashboard/trust/repairs.html",
        status=problem.status if problem else 200,
        plan=plan,
        problem=problem,
        steps=[_readable(step) for step in plan.steps[(at - 1) * ON_A_PAGE : at * ON_A_PAGE]],
        at=at,
        last=last,
        is_open=plan.state in _OPEN,
        approved=approved,
        words=_words_for(plan),
        lasting=[step for step in _in(plan, StepState.APPLIED) if not step.reversible],
        stale=_in(plan, StepState.STALE),
        unsaid=len(plan.steps) - len(approved) - len(_in(plan, StepState.REFUSED)),
        conversations=sorted({step.conversation_id for step in plan.steps if step.conversation_id is not None}),
        may_decide=may(visit.caller, "lcm_approve_repairs"),
        may_plan=may(visit.caller, "lcm_plan_repairs"),
    )


def _readable(step: StepRecord) -> dict[str, Any]:
    lines, more = difference(step.before, step.after)
    return {"step": step, "deed": deed_of(step.operation), "lines": lines, "more": more}


def _words_for(plan: RepairPlanRecord) -> str:
    """What has to be typed before the plan is applied: nothing where all that is approved is harmless."""
    approved = _in(plan, StepState.APPROVED)
    is_grave = any(step.risk is Risk.HIGH or not step.reversible for step in approved)
    return f"apply {counted(len(approved), 'step')}" if is_grave else ""


def _in(plan: RepairPlanRecord, state: StepState) -> Sequence[StepRecord]:
    return [step for step in plan.steps if step.state is state]

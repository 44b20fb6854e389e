"""What is withheld from models because it is damaged: listed, added to, and let go."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from conversations.errors import Invalid, LcmError
from integrity.types import QuarantineRecord
from lcmsite.catalogue.problems import Problem, problem_of
from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.addresses import number_in
from lcmsite.dashboard.parts.pager import paged
from lcmsite.dashboard.service import ask, may
from lcmsite.types import KeyScope

ON_A_PAGE = 50


@page()
def quarantine(visit: Visit) -> HttpResponse:
    """What is withheld now, or also what once was; of all conversations, or of one."""
    return _shown(visit)


@page(KeyScope.ADMIN, methods=("POST",))
def withhold(visit: Visit) -> HttpResponse:
    """Show a thing to no model any more, with a reason for those who come later."""
    given = visit.request.POST
    id, reason = given.get("id", "").strip(), given.get("reason", "").strip()
    try:
        held: QuarantineRecord = ask(visit.caller, "lcm_quarantine", id=id, reason=reason)
    except LcmError as refusal:
        return _shown(visit, problem_of(refusal), id=id, reason=reason)
    messages.success(visit.request, f"{held.target} is shown to no model any more. Its row stays as it is.")
    return redirect("quarantine", workspace=visit.workspace.name)


@page(KeyScope.ADMIN, methods=("POST",))
def release(visit: Visit, quarantine_id: int) -> HttpResponse:
    """Let a thing be shown again, by somebody who has said that it is as it should be."""
    try:
        if not visit.request.POST.get("is_right"):
            raise Invalid(
                "It stays withheld: tick that you have looked at it, and that it is as it should be.",
                code="not_confirmed",
            )
        freed: QuarantineRecord = ask(visit.caller, "lcm_release", quarantine_id=quarantine_id)
    except LcmError as refusal:
        return _shown(visit, problem_of(refusal))
    messages.success(visit.request, f"{freed.target} is shown to models again.")
    return redirect("quarantine", workspace=visit.workspace.name)


def _shown(visit: Visit, problem: Problem | None = None, **given: str) -> HttpResponse:
    with_released = visit.request.GET.get("released") == "yes"
    before, conversation_id = (number_in(visit.request.GET, name) for name in ("before", "conversation_id"))
    found: list[QuarantineRecord] = ask(
        visit.caller,
        "lcm_quarantines",
        conversation_id=conversation_id,
        released=with_released,
        before_id=before,
        limit=ON_A_PAGE + 1,
    )
    asked = {"released": "yes" if with_released else None, "conversation_id": conversation_id}
    return visit.show(
        "dashboard/trust/quarantine.html",
        status=problem.status if problem else 200,
        problem=problem,
        paged=paged(found, most=ON_A_PAGE, key="quarantine_id", before=before, asked=asked),
        with_released=with_released,
        conversation_id=conversation_id,
        may_decide=may(visit.caller, "lcm_release"),
        given=given,
    )

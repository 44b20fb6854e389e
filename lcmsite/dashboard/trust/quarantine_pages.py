"""Quarantine: content that no model sees because it is damaged."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse

from conversations.errors import Invalid, LcmError
from integrity.types import QuarantineRecord
from lcmsite.catalogue.problems import Problem, problem_of
from lcmsite.dashboard.page import Visit, number_in, page
from lcmsite.dashboard.parts.pager import paged
from lcmsite.types import KeyScope

ON_A_PAGE = 50


@page()
def quarantine(visit: Visit) -> HttpResponse:
    """What is quarantined, or was; of all conversations or of one."""
    return _shown(visit)


@page(KeyScope.ADMIN, methods=("POST",))
def withhold(visit: Visit) -> HttpResponse:
    """Quarantine content by its id, with a reason."""
    given = visit.request.POST
    id, reason = given.get("id", "").strip(), given.get("reason", "").strip()
    try:
        held: QuarantineRecord = visit.ask("lcm_quarantine", id=id, reason=reason)
    except LcmError as refusal:
        return _shown(visit, problem_of(refusal), id=id, reason=reason)
    messages.success(visit.request, f"{held.target} was quarantined. Its row stays unchanged.")
    return visit.redirect("quarantine")


@page(KeyScope.ADMIN, methods=("POST",))
def release(visit: Visit, quarantine_id: int) -> HttpResponse:
    """Release content after a person has confirmed that it is correct."""
    try:
        if not visit.request.POST.get("is_right"):
            raise Invalid(
                "Not released: confirm that you have checked it and that it is correct.",
                code="not_confirmed",
            )
        freed: QuarantineRecord = visit.ask("lcm_release", quarantine_id=quarantine_id)
    except LcmError as refusal:
        return _shown(visit, problem_of(refusal))
    messages.success(visit.request, f"{freed.target} was released; models see it again.")
    return visit.redirect("quarantine")


def _shown(visit: Visit, problem: Problem | None = None, **given: str) -> HttpResponse:
    with_released = visit.request.GET.get("released") == "yes"
    before, conversation_id = (number_in(visit.request.GET, name) for name in ("before", "conversation_id"))
    found: list[QuarantineRecord] = visit.ask(
        "lcm_quarantines",
        conversation_id=conversation_id,
        released=with_released,
        before_id=before,
        limit=ON_A_PAGE + 1,
    )
    filters = {"released": "yes" if with_released else None, "conversation_id": conversation_id}
    return visit.show(
        "dashboard/trust/quarantine.html",
        refusal=problem,
        paged=paged(found, most=ON_A_PAGE, key="quarantine_id", before=before, filters=filters),
        with_released=with_released,
        conversation_id=conversation_id,
        may_decide=visit.may("lcm_release"),
        given=given,
    )

"""What goes cold and when, what everything takes up, and one conversation's tier, findings and quarantines."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from conversations.errors import ConversationBusy, Invalid, LcmError
from conversations.humanize import counted
from integrity.policy import MOST_DAYS
from integrity.retention.types import TierMove
from integrity.types import ScanMode
from lcmsite.catalogue.problems import Problem, problem_of
from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.pager import paged
from lcmsite.dashboard.service import ask, may
from lcmsite.types import KeyScope

ON_A_PAGE = 10
HELD = 50


@page()
def retention(visit: Visit) -> HttpResponse:
    """The rule of the workspace, how many conversations it is due for, and the way to change it."""
    return _shown(visit)


@page(KeyScope.ADMIN, methods=("POST",))
def set_retention(visit: Visit) -> HttpResponse:
    """Another rule: after so many days, never, or as the site has it."""
    try:
        ask(visit.caller, "lcm_set_retention", cold_after_days=_days(visit))
    except LcmError as refusal:
        return _shown(visit, problem_of(refusal))
    messages.success(visit.request, "The rule is set. What is cold already stays so until it is thawed.")
    return redirect("retention", workspace=visit.workspace.name)


@page()
def storage(visit: Visit) -> HttpResponse:
    """What everything takes up, by tier; counting may take seconds, so that it comes after the page."""
    found = ask(visit.caller, "lcm_storage")
    return visit.show("dashboard/trust/_storage.html", storage=found)


@page()
def conversation_trust(visit: Visit, conversation_id: int) -> HttpResponse:
    """One conversation: what checks found in it, what of it is withheld, and where its texts are."""
    before = visit.request.GET.get("before") or None
    conversation = ask(visit.caller, "lcm_show", conversation_id=conversation_id)
    reports = ask(
        visit.caller, "lcm_reports", conversation_id=conversation_id, before_report=before, limit=ON_A_PAGE + 1
    )
    return visit.show(
        "dashboard/trust/conversation.html",
        conversation=conversation,
        paged=paged(reports, most=ON_A_PAGE, key="report_id", before=before),
        held=ask(visit.caller, "lcm_quarantines", conversation_id=conversation_id, limit=HELD),
        extents=list(ScanMode),
        may_plan=may(visit.caller, "lcm_plan_repairs"),
        may_move=may(visit.caller, "lcm_archive"),
    )


@page(KeyScope.ADMIN, methods=("POST",))
def archive(visit: Visit, conversation_id: int) -> HttpResponse:
    """Move the conversation's texts to the cold tier, as far as one request goes."""
    return _moved(visit, conversation_id, "lcm_archive")


@page(KeyScope.ADMIN, methods=("POST",))
def thaw(visit: Visit, conversation_id: int) -> HttpResponse:
    """Bring its texts back into their rows, as far as one request goes."""
    return _moved(visit, conversation_id, "lcm_thaw")


def _moved(visit: Visit, conversation_id: int, tool: str) -> HttpResponse:
    """What moved, beside what can be done now; why nothing did, in the same place."""
    moved: TierMove | None = None
    problem: Problem | None = None
    try:
        moved = ask(visit.caller, tool, conversation_id=conversation_id)
    except ConversationBusy as refusal:
        problem = problem_of(refusal)
    if visit.is_part:
        return visit.show(
            "dashboard/trust/_tier.html",
            status=problem.status if problem else 200,
            conversation=ask(visit.caller, "lcm_show", conversation_id=conversation_id),
            moved=moved,
            problem=problem,
            # By itself only as long as it gets on.
            goes_on=moved is not None and moved.more and moved.messages > 0,
            may_move=True,
        )
    if moved is not None:
        left = " There is more: go on." if moved.more else ""
        said = f"{counted(moved.messages, 'message')} moved, {moved.cold_messages:,} cold now.{left}"
        messages.success(visit.request, said)
    elif problem is not None:
        messages.error(visit.request, problem.detail)
    return redirect("conversation-trust", workspace=visit.workspace.name, conversation_id=conversation_id)


def _days(visit: Visit) -> int | None:
    """None for the site's rule; a hundred years for never."""
    given = visit.request.POST
    match given.get("rule"):
        case "site":
            return None
        case "never":
            return MOST_DAYS
    text = given.get("days", "").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_DAYS))):
        raise Invalid(f"days: say a whole number from 1 to {MOST_DAYS:,}.")
    return int(text)


def _shown(visit: Visit, problem: Problem | None = None) -> HttpResponse:
    return visit.show(
        "dashboard/trust/retention.html",
        status=problem.status if problem else 200,
        problem=problem,
        retention=ask(visit.caller, "lcm_retention"),
        never=MOST_DAYS,
        may_set=may(visit.caller, "lcm_set_retention"),
    )

"""Retention, storage, and the trust page of one conversation."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.http.response import HttpResponseBase

from conversations.errors import ConversationBusy, Invalid
from conversations.humanize import counted
from integrity.policy import MOST_DAYS
from integrity.retention.types import TierMove
from integrity.types import ScanMode
from lcmsite.api.streams import ledger_response
from lcmsite.catalogue.problems import Problem, problem_of
from lcmsite.dashboard.visit import POST, Visit, page, text_in
from lcmsite.types import KeyScope

ON_A_PAGE = 10
HELD = 50


def _show_rule(visit: Visit, problem: Problem | None = None) -> HttpResponse:
    return visit.show(
        "trust/retention.html",
        refusal=problem,
        retention=visit.call("lcm_retention"),
        never=MOST_DAYS,
    )


@page()
def retention(visit: Visit) -> HttpResponse:
    """The retention rule of the workspace, and the form to change it."""
    return _show_rule(visit)


@page(KeyScope.ADMIN, POST, on_refusal=_show_rule)
def set_retention(visit: Visit) -> HttpResponse:
    """Change the rule: after a number of days, never, or the site's default."""
    visit.call("lcm_set_retention", cold_after_days=_days(visit))
    return visit.redirect("retention", done="The rule was changed. Cold conversations stay cold until they are thawed.")


@page()
def storage(visit: Visit) -> HttpResponse:
    """Storage by tier, loaded after the page because counting may take seconds."""
    return visit.show("trust/_storage.html", storage=visit.call("lcm_storage"))


@page()
def conversation_trust(visit: Visit, conversation_id: int) -> HttpResponse:
    """The trust page of a conversation: tier, quarantines, ledger and checks."""
    return visit.show(
        "trust/conversation.html",
        conversation=visit.call("lcm_show", conversation_id=conversation_id),
        paged=visit.list_page("lcm_reports", limit=ON_A_PAGE, conversation_id=conversation_id),
        held=visit.call("lcm_quarantines", conversation_id=conversation_id, limit=HELD),
        extents=list(ScanMode),
    )


@page(KeyScope.ADMIN, POST)
def archive(visit: Visit, conversation_id: int) -> HttpResponse:
    """Move messages to the cold tier; one request may not move all of them."""
    return _move(visit, conversation_id, "lcm_archive")


@page(KeyScope.ADMIN, POST)
def thaw(visit: Visit, conversation_id: int) -> HttpResponse:
    """Move messages back to the hot tier; one request may not move all of them."""
    return _move(visit, conversation_id, "lcm_thaw")


def _move(visit: Visit, conversation_id: int, tool: str) -> HttpResponse:
    """Move messages between the tiers, and show the result or the problem."""
    moved: TierMove | None = None
    problem: Problem | None = None
    try:
        moved = visit.call(tool, conversation_id=conversation_id)
    except ConversationBusy as refusal:
        problem = problem_of(refusal)
    if visit.is_part:
        return visit.show(
            "trust/_tier.html",
            conversation=visit.call("lcm_show", conversation_id=conversation_id),
            moved=moved,
            refusal=problem,
            # The page repeats the request until everything is moved.
            goes_on=moved is not None and moved.more and moved.messages > 0,
        )
    text = ""
    if moved is not None:
        left = " Repeat to move the rest." if moved.more else ""
        text = f"{counted(moved.messages, 'message')} moved, {moved.cold_messages:,} cold now.{left}"
    elif problem is not None:
        messages.error(visit.request, problem.detail)
    return visit.redirect("conversation-trust", done=text, conversation_id=conversation_id)


def _days(visit: Visit) -> int | None:
    """The days of the rule: None for the site's default, the maximum for never."""
    given = visit.request.POST
    match given.get("rule"):
        case "site":
            return None
        case "never":
            return MOST_DAYS
    text = text_in(given, "days")
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_DAYS))):
        raise Invalid(f"days: enter a whole number from 1 to {MOST_DAYS:,}.")
    return int(text)


@page()
def ledger(visit: Visit, conversation_id: int) -> HttpResponseBase:
    response = ledger_response(visit.caller, conversation_id)
    response["Content-Disposition"] = f'attachment; filename="conversation-{conversation_id}.jsonl"'
    return response

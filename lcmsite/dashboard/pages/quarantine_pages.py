"""Quarantine: content that no model sees because it is damaged."""

from __future__ import annotations

from django.http import HttpResponse

from conversations.errors import Invalid
from integrity.types import QuarantineRecord
from lcmsite.catalogue.problems import Problem
from lcmsite.dashboard.visit import POST, Visit, number_in, page, text_in
from lcmsite.types import KeyScope


def _show_list(visit: Visit, problem: Problem | None = None, **path: int) -> HttpResponse:
    """The list and the form, which keeps the entered values if they were refused."""
    with_released = visit.request.GET.get("released") == "yes"
    conversation_id = number_in(visit.request.GET, "conversation_id")
    return visit.show(
        "trust/quarantine.html",
        refusal=problem,
        paged=visit.list_page(
            "lcm_quarantines",
            filters={"released": "yes" if with_released else None, "conversation_id": conversation_id},
            conversation_id=conversation_id,
            released=with_released,
        ),
        with_released=with_released,
        conversation_id=conversation_id,
        given={name: text_in(visit.request.POST, name) for name in ("id", "reason")},
    )


@page()
def quarantine(visit: Visit) -> HttpResponse:
    """The quarantines of all conversations or of one, released ones on request."""
    return _show_list(visit)


@page(KeyScope.ADMIN, POST, on_refusal=_show_list)
def withhold(visit: Visit) -> HttpResponse:
    given = visit.request.POST
    held: QuarantineRecord = visit.call("lcm_quarantine", id=text_in(given, "id"), reason=text_in(given, "reason"))
    return visit.redirect("quarantine", done=f"{held.target} was quarantined. Its row stays unchanged.")


@page(KeyScope.ADMIN, POST, on_refusal=_show_list)
def release(visit: Visit, quarantine_id: int) -> HttpResponse:
    """Release content after a person has confirmed that it is correct."""
    if not visit.request.POST.get("is_right"):
        raise Invalid("Not released: confirm that you have checked it and that it is correct.", code="not_confirmed")
    freed: QuarantineRecord = visit.call("lcm_release", quarantine_id=quarantine_id)
    return visit.redirect("quarantine", done=f"{freed.target} was released; models see it again.")

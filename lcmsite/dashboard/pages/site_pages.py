"""Pages of the site: settings, models, periodic tasks, queues and the audit log."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from conversations.audit import Act
from lcmsite.dashboard.visit import POST, Visit, choices_in, number_in, page, texts_in
from lcmsite.effective_settings import Source, settings_in_force
from lcmsite.periodic_tasks import read_schedule
from lcmsite.types import KeyScope


@page(KeyScope.ADMIN)
def configuration(visit: Visit) -> HttpResponse:
    """The settings of the site or of one conversation, with their sources."""
    conversation_id = number_in(visit.request.GET, "conversation_id")
    chosen = None if conversation_id is None else visit.call("lcm_show", conversation_id=conversation_id)
    conversations = visit.recent_conversations()
    if chosen is not None and chosen.conversation_id not in {each.conversation_id for each in conversations}:
        conversations.insert(0, chosen)
    in_force = settings_in_force(chosen.overrides if chosen is not None else None)
    rooms = [each for each in in_force if visit.caller.is_operator or not each.operator_only]
    return visit.show(
        "settings.html",
        rooms=rooms,
        changed=sum(each.source is not Source.DEFAULT for room in rooms for each in room.settings),
        chosen=chosen,
        conversations=conversations,
    )


@page(KeyScope.ADMIN, operator_only=True)
def clock(visit: Visit) -> HttpResponse:
    """The periodic tasks, and the contents of the queues."""
    return visit.show("clock.html", clock=read_schedule())


@page(KeyScope.ADMIN, operator_only=True)
def models(visit: Visit) -> HttpResponse:
    return visit.show("models.html", models=visit.call("lcm_models"))


@page(KeyScope.ADMIN, POST, operator_only=True)
def reset_model(visit: Visit, name: str) -> HttpResponse:
    """Resume a paused model at once and reset its spending window."""
    visit.call("lcm_reset_model", name=name)
    return visit.redirect("models", done=f"{name} was resumed.")


@page(KeyScope.ADMIN)
def audit(visit: Visit) -> HttpResponse:
    """The audit log, newest first, filtered by operation and conversation."""
    given = visit.request.GET
    texts = texts_in(given, ("conversation_id",))
    filters: dict[str, Any] = {**choices_in(given, act=Act), **texts}
    paged = visit.list_page("lcm_audit", filters=filters, act=filters["act"], in_text=texts)
    return visit.show("audit.html", acts=list(Act), filters=filters, paged=paged)

"""The settings in force, and who said so."""

from __future__ import annotations

from django.http import HttpResponse

from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.addresses import number_in
from lcmsite.dashboard.service import ask
from lcmsite.effective_settings import Source, settings_in_force
from lcmsite.types import KeyScope
from retrieval.describing.browsing import BrowseSort

CHOICES = 100


@page(KeyScope.ADMIN)
def configuration(visit: Visit) -> HttpResponse:
    """Settings with their source, of the site or of one conversation; a superuser sees those of the site itself too."""
    conversation_id = number_in(visit.request.GET, "conversation_id")
    chosen = None if conversation_id is None else ask(visit.caller, "lcm_show", conversation_id=conversation_id)
    recent = ask(visit.caller, "lcm_browse", sort=BrowseSort.UPDATED, limit=CHOICES).conversations
    conversations = [each.conversation for each in recent]
    if chosen is not None and chosen.conversation_id not in {each.conversation_id for each in conversations}:
        conversations.insert(0, chosen)
    in_force = settings_in_force(chosen.overrides if chosen is not None else None)
    rooms = [each for each in in_force if visit.caller.is_operator or not each.of_the_site]
    return visit.show(
        "dashboard/settings.html",
        rooms=rooms,
        changed=sum(each.source is not Source.DEFAULT for room in rooms for each in room.settings),
        chosen=chosen,
        conversations=conversations,
    )

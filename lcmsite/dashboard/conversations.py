"""The conversations of a workspace, and one of them, readable."""

from __future__ import annotations

from django.http import HttpResponse

from lcmsite.dashboard.asking import ask
from lcmsite.dashboard.pages import Visit, page


@page()
def transcript(visit: Visit, conversation_id: int) -> HttpResponse:
    """The messages, as they were said."""
    return visit.show(
        "dashboard/transcript.html", conversation=ask(visit.caller, "lcm_show", conversation_id=conversation_id)
    )

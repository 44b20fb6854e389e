"""A conversation as a file, for whoever wants to verify it where LCM has no say."""

from __future__ import annotations

from django.http.response import HttpResponseBase

from lcmsite.api.ledger_stream import ledger_response
from lcmsite.dashboard.page import Visit, page


@page()
def ledger(visit: Visit, conversation_id: int) -> HttpResponseBase:
    """Its ledger, as over REST, to be saved."""
    response = ledger_response(visit.caller, conversation_id)
    response["Content-Disposition"] = f'attachment; filename="conversation-{conversation_id}.jsonl"'
    return response

"""A conversation's ledger, streamed as it is read: JSON Lines, which no JSON answer could hold. REST alone has this."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, StreamingHttpResponse

from conversations.params import ConversationParams
from integrity.ledgers import Ledgers
from lcmsite.adapters.keys import Caller
from lcmsite.adapters.openapi import documented_stream
from lcmsite.types import KeyScope

LEDGER = "conversations/{conversation_id}/ledger/"
JSON_LINES = "application/x-ndjson"


@documented_stream(
    "ledger",
    LEDGER,
    ConversationParams,
    chapter="Ledgers",
    media_type=JSON_LINES,
    statuses={200: "The ledger, a JSON object a line."},
)
def ledger(self: object, request: HttpRequest, caller: Caller, in_path: Mapping[str, str]) -> StreamingHttpResponse:
    """A whole conversation as a ledger, streamed.

    JSON Lines in the format of docs/ledger.md; one that breaks off has no trailer and does not verify. On the command
    line it is `lcm ledger export`.
    """
    caller.require(KeyScope.READ)
    asked = ConversationParams.accepted(ConversationParams.read_from({**in_path, **request.GET.dict()}))
    # Before the first line, so that a refusal is one.
    conversation = caller.scope.conversation(asked["conversation_id"])
    lines = Ledgers.from_settings(caller.scope).lines(conversation_id=conversation.pk)
    response = StreamingHttpResponse(lines, content_type=JSON_LINES)
    response["X-Content-Type-Options"] = "nosniff"
    return response

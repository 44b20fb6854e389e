"""A conversation's ledger, streamed as it is read: JSON Lines, which no JSON answer could hold. REST alone has this."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, StreamingHttpResponse
from drf_spectacular.utils import extend_schema

from conversations.params import ConversationParams
from integrity.ledgers import Ledgers
from lcmsite.adapters.keys import Caller
from lcmsite.types import KeyScope

LEDGER = "conversations/{conversation_id}/ledger/"
JSON_LINES = "application/x-ndjson"


@extend_schema(exclude=True)
def ledger(self: object, request: HttpRequest, caller: Caller, in_path: Mapping[str, str]) -> StreamingHttpResponse:
    """The ledger in the format of docs/ledger.md; one that breaks off has no trailer, and does not verify."""
    caller.require(KeyScope.READ)
    asked = ConversationParams.accepted(ConversationParams.read_from({**in_path, **request.GET.dict()}))
    # Before the first line, so that a refusal is one.
    conversation = caller.scope.conversation(asked["conversation_id"])
    lines = Ledgers.from_settings(caller.scope).lines(conversation_id=conversation.pk)
    response = StreamingHttpResponse(lines, content_type=JSON_LINES)
    response["X-Content-Type-Options"] = "nosniff"
    return response

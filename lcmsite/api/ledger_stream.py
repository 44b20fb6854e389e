"""A conversation's ledger, streamed as it is read: JSON Lines, which no JSON answer could hold. REST alone has this."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from django.http import StreamingHttpResponse
from rest_framework.request import Request

from conversations.params import ConversationParams
from integrity.ledgers import Ledgers
from lcmsite.access.keys import Caller
from lcmsite.api.concurrency import gate
from lcmsite.api.openapi import documented_stream
from lcmsite.types import KeyScope

LEDGER = "conversations/{conversation_id}/ledger/"
JSON_LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Held:
    """Lines with what is held until they are closed. A generator that never began would release nothing."""

    lines: Generator[bytes, None, None]
    held: ExitStack

    def __iter__(self) -> Iterator[bytes]:
        return self.lines

    def close(self) -> None:
        # First the lines: they read in a transaction, which has to end before the connection is given back.
        with self.held:
            self.lines.close()


@documented_stream(
    "conversations_ledger",
    LEDGER,
    ConversationParams,
    chapter="Ledgers",
    media_type=JSON_LINES,
    statuses={200: "The ledger, a JSON object a line."},
)
def ledger(self: object, request: Request, **in_path: str) -> StreamingHttpResponse:
    """A whole conversation as a ledger, streamed.

    JSON Lines in the format of docs/ledger.md; one that breaks off has no trailer and does not verify. On the command
    line it is `lcm ledger export`.
    """
    caller: Any = request.user
    caller.require(KeyScope.READ)
    given = {**in_path, **request.GET.dict()}
    return ledger_response(caller, ConversationParams.accepted(given, in_text=given)["conversation_id"])


def ledger_response(caller: Caller, conversation_id: int) -> StreamingHttpResponse:
    """The ledger, for a caller from anywhere."""
    caller.require(KeyScope.READ)
    # Before the first line, so that a refusal is one.
    conversation = caller.scope.conversation(conversation_id)
    lines = Ledgers.from_settings(caller.scope).lines(conversation_id=conversation.pk)
    held = ExitStack()
    held.enter_context(gate().entered(caller.scope.actor, heavy=True))
    response = StreamingHttpResponse(Held(lines, held), content_type=JSON_LINES)
    response["X-Content-Type-Options"] = "nosniff"
    return response

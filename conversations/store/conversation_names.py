"""Find the conversation that a number, an id or a session names."""

from __future__ import annotations

import re

from django.db.models import Q

from conversations.content.lossless_values import is_storable
from conversations.errors import Invalid
from conversations.models import Conversation
from conversations.scope import Scope, not_found

SESSION = "session:"
HOW_TO_NAME = "The conversation: its number or id (conv_7), or its session (session:7 for the name 7)."
# A number has no leading zeros: 007 is only a session.
_NUMBER = re.compile("(?P<prefix>conv_)?(?P<number>0|[1-9][0-9]{0,17})")


def conversation_named(given: str, *, scope: Scope) -> int:
    """The number of a conversation, given by its number, its id or its session.

    `session:7` is always the session with the name 7. `conv_7` is conversation 7 if the scope has it, and otherwise the
    session with this name. Raises Invalid for a number that is also the session of another conversation, and NotFound
    if the scope has no such conversation, or several with this session.
    """
    session_id = given.removeprefix(SESSION)
    id = _NUMBER.fullmatch(given)
    number = int(id["number"]) if id is not None else None
    found: dict[int, str] = {}
    if is_storable(given):
        rows = scope.narrow(Conversation.objects.filter(Q(pk=number) | Q(session_id=session_id)))
        found = dict(rows.values_list("pk", "session_id"))
    by_session = [each for each, name in found.items() if name == session_id and each != number]
    if id is not None and number in found:
        if by_session and not id["prefix"]:
            raise Invalid(
                f"{given} is the number of a conversation and the session of another one: name conv_{given} or "
                f"{SESSION}{given}."
            )
        return number
    if len(by_session) != 1:
        raise not_found("conversation", given)
    return by_session[0]

"""Find the id of a conversation from what a person or an agent typed."""

from __future__ import annotations

from conversations.scope import Scope
from conversations.store.conversations import ConversationStore

SESSION = "session:"


def conversation_named(given: str, *, scope: Scope) -> int | str:
    """The id of a conversation that is given by its id or its session name.

    `session:7` is the session with the name 7. Raises NotFound if the scope has no such session. Ids are not checked.
    """
    if given.isascii() and given.isdigit():
        return given
    store = ConversationStore.from_settings(scope)
    return store.find_conversation(session_id=given.removeprefix(SESSION)).conversation_id

"""Resolve the names that people and agents give to conversations to ids."""

from __future__ import annotations

from conversations.scope import Scope
from conversations.store.conversations import ConversationStore

SESSION = "session:"


def conversation_named(given: str, *, scope: Scope) -> int | str:
    """The id of a conversation given by id or session; `session:7` is a session.

    Raises NotFound for a session that is not in the scope. Ids are not looked up.
    """
    if given.isascii() and given.isdigit():
        return given
    store = ConversationStore.from_settings(scope)
    return store.find_conversation(session_id=given.removeprefix(SESSION)).conversation_id

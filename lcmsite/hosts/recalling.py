"""Recall what a host no longer shows, as text within the host's bounds."""

from __future__ import annotations

from lcmsite.hosts.rest_client import RestClient

# With fewer tokens a summary has no room.
_LEAST_TOKENS = 200


def recalled(lcm: RestClient, *, session: str, project: str, tokens: int, characters: int) -> str:
    """The marked text about a session's past and its project's; empty if there is none.

    Raises Unreachable.
    """
    conversation = lcm.get("conversations/find/", session_id=session) if session else None
    path = "recall/" if conversation is None else f"conversations/{conversation['conversation_id']}/recall/"
    query = {"project": project} if conversation is None or conversation.get("project") is None else {}
    if conversation is None and not project:
        return ""
    while tokens >= _LEAST_TOKENS:
        found = lcm.get(path, budget=tokens, share=1, marked="true", **query)
        if found is None and conversation is not None and query:
            # No project of this name yet.
            query = {}
            continue
        text = str(found["text"]) if found else ""
        if len(text) <= characters:
            return text
        # The mark is over the whole text: it cannot be cut.
        tokens = min(tokens - 100, tokens * characters // len(text) * 9 // 10)
    return ""

"""Create data for tests with the real services."""

from __future__ import annotations

import itertools
from typing import Any

from conversations.models import Workspace
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from conversations.types import AppendResult, ConversationRecord, NewMessage, NewPart, PartType, Role

_numbers = itertools.count(1)


def a_workspace(name: str | None = None) -> Workspace:
    return Workspace.objects.get_or_create(name=name or "default")[0]


def a_store(workspace: Workspace | None = None) -> ConversationStore:
    return ConversationStore.from_settings(Scope((workspace or a_workspace()).pk))


def a_conversation(
    *texts: str, session_id: str | None = None, workspace: Workspace | None = None, **options: Any
) -> ConversationRecord:
    """A conversation with these texts, alternately by the user and the assistant."""
    store = a_store(workspace)
    conversation = store.open_conversation(session_id=session_id or f"session-{next(_numbers)}", **options)
    roles = itertools.cycle((Role.USER, Role.ASSISTANT))
    messages = [NewMessage(role, text) for role, text in zip(roles, texts, strict=False)]
    for start in range(0, len(messages), 1000):
        store.append_messages(conversation_id=conversation.conversation_id, messages=messages[start : start + 1000])
    return store.get_conversation(conversation_id=conversation.conversation_id)


def say(conversation_id: int, *messages: str | NewMessage) -> AppendResult:
    """Append messages; a text is one by the user."""
    said = [NewMessage(Role.USER, each) if isinstance(each, str) else each for each in messages]
    return a_store().append_messages(conversation_id=conversation_id, messages=said)


def a_tool_call(call_id: str, name: str = "read_file", **arguments: Any) -> NewMessage:
    """An assistant's message that calls a tool."""
    return NewMessage(
        Role.ASSISTANT,
        parts=(
            NewPart(PartType.TOOL, tool_call_id=call_id, tool_name=name, tool_input=arguments, tool_status="pending"),
        ),
    )


def a_tool_result(call_id: str, output: str) -> NewMessage:
    """The tool's result for a call."""
    return NewMessage(
        Role.TOOL, parts=(NewPart(PartType.TOOL, tool_call_id=call_id, tool_output=output, tool_status="completed"),)
    )

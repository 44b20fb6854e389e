"""A host's side of the tests: the service it calls, and something to say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compaction.engine import CompactionEngine
from compaction.hosts.host_service import HostCompaction
from compaction.policy import CompactionPolicy
from conversations.models import Workspace
from conversations.scope import Scope
from conversations.types import ConversationRecord, NewMessage, Role
from tests.factories import a_conversation, a_workspace, say


def hosts(workspace: Workspace | None = None, **settings: Any) -> HostCompaction:
    """The service in a workspace, with the given settings changed."""
    engine = CompactionEngine.from_settings(Scope((workspace or a_workspace()).pk))
    return HostCompaction(engine=replace(engine, policy=CompactionPolicy(**settings)))


def a_talk(messages: int = 40) -> ConversationRecord:
    return a_conversation(*(f"Message {n} is about harbour {n} and port {5000 + n}. " * 12 for n in range(messages)))


def append(conversation_id: int, text: str, **values: Any) -> None:
    say(conversation_id, NewMessage(Role.USER, text, **values))

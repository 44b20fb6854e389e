"""A conversation that has everything in it that agents ask for."""

from __future__ import annotations

from typing import Any

from compaction.engine import CompactionEngine
from conversations.files.large_files import LargeFileService
from conversations.models import Summary
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace


def a_harbour() -> dict[str, Any]:
    """Made by the real services; what there is to ask about, by the names of params."""
    scope = Scope(a_workspace().pk)
    conversation_id = a_conversation(
        *(f"Message {number} about the harbour and its boats. " * 30 for number in range(40)), session_id="harbour"
    ).conversation_id
    a_store().append_messages(
        conversation_id=conversation_id,
        messages=[a_tool_call("c1", path="boats.txt"), a_tool_result("c1", "seven boats \ud800\x00")],
    )
    CompactionEngine.from_settings(scope).compact(conversation_id=conversation_id)
    file = LargeFileService.from_settings(scope).store(
        conversation_id=conversation_id, content=b"a,b\n1,\xc3\xa9\n", mime_type="text/csv"
    )
    picture = LargeFileService.from_settings(scope).store(conversation_id=conversation_id, content=b"\x89PNG\xff")
    summary_id = Summary.objects.filter(kind="leaf").first().summary_id
    # From now on to say it again changes nothing, whoever says it.
    once = NewMessage(Role.USER, "again", idempotency_key="once")
    a_store().append_messages(conversation_id=conversation_id, messages=[once])
    return {
        "conversation_id": conversation_id,
        "session_id": "harbour",
        "summary_id": summary_id,
        "id": summary_id,
        "file_id": file.file_id,
        "picture_id": picture.file_id,
        "query": "harbour boats",
        "from_seq": 2,
        "to_seq": 41,
        "question": "Which boats are in the harbour?",
        "messages": [{"role": "user", "content": "again", "idempotency_key": "once"}],
    }

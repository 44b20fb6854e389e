"""A conversation that has everything in it that agents ask for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compaction.engine import CompactionEngine
from compaction.hosts.host_service import HostCompaction
from conversations.files.large_files import LargeFileService
from conversations.models import Message, Summary, Workspace
from conversations.scope import Scope
from retrieval.map.map_operator import MapOperator
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace
from tests.pasts import a_session_summary


def a_harbour(workspace: Workspace | None = None, *, result: str = "seven boats \ud800\x00") -> dict[str, Any]:
    """Made by the real services; what there is to ask about, by the names of params."""
    workspace = workspace or a_workspace()
    scope = Scope(workspace.pk)
    conversation_id = a_conversation(
        *(f"Message {number} about the harbour and its boats. " * 30 for number in range(40)),
        session_id="harbour",
        workspace=workspace,
    ).conversation_id
    call = replace(a_tool_call("c1", path="boats.txt"), idempotency_key="call 1")
    a_store(workspace).append_messages(conversation_id=conversation_id, messages=[call, a_tool_result("c1", result)])
    CompactionEngine.from_settings(scope).compact(conversation_id=conversation_id)
    files = LargeFileService.from_settings(scope)
    file = files.store(conversation_id=conversation_id, content=b"a,b\n1,\xc3\xa9\n", mime_type="text/csv")
    # Flushing again under this name changes nothing.
    host = HostCompaction.from_settings(scope).record_boundary(conversation_id=conversation_id, host_reference="cut 7")
    summary_id = Summary.objects.filter(conversation_id=conversation_id, kind="leaf").first().summary_id
    # Outside agents work on it, so no model is needed. The same key is the same run.
    mapped = {
        "prompt": "Label {{item}}, of the harbour.",
        "output_schema": {"type": "object"},
        "kind": "agentic",
        "retain": "the harbour's books",
        "items": ["ferry"],
        "idempotency_key": "harbour",
    }
    return {
        "conversation_id": conversation_id,
        "session_id": "harbour",
        "message_id": Message.objects.filter(conversation_id=conversation_id).first().pk,
        "host_reference": host.host_reference,
        "summary_id": summary_id,
        "session_summary_id": a_session_summary(conversation_id, "Of the harbour and its boats.").pk,
        "id": summary_id,
        "file_id": file.file_id,
        "query": "harbour boats",
        "entity": "harbour",
        **mapped,
        "run_id": MapOperator.from_settings(scope).submit(**mapped, conversation_id=conversation_id).run_id,
        "from_seq": 2,
        "to_seq": 41,
        "question": "Which boats are in the harbour?",
        # To say it again changes nothing, so that each face finds what the last one left.
        "messages": [{"role": "user", "content": "again", "idempotency_key": "once"}],
    }

"""Ledgers for tests: conversations that have everything in them, and what becomes of them."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.db import connection

from compaction.engine import CompactionEngine
from compaction.history.session_history import SessionHistory
from compaction.hosts.host_service import HostCompaction
from compaction.policy import CompactionPolicy
from conversations.files.large_files import LargeFileService
from conversations.ledger.types import ImportReport, LedgerReport
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.ledgers import Ledgers
from tests.committed import empty_all_tables
from tests.conversations.ledger import verifier
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace

# More than one line of a ledger holds.
BOATS = b"a,b\n1,2\n" * 50_000


def the_ledgers(workspace: str = "default") -> Ledgers:
    return Ledgers.from_settings(Scope(a_workspace(workspace).pk, actor="operator"))


def exported(conversation_id: int | None = None, workspace: str = "default") -> bytes:
    """The ledger of one conversation, or of all in the workspace."""
    return b"".join(the_ledgers(workspace).lines(conversation_id=conversation_id))


def verified(ledger: bytes) -> LedgerReport:
    return Ledgers.from_settings().verify_file(io.BytesIO(ledger), name="a ledger")


def imported(ledger: bytes, directory: Path, workspace: str = "default", **options: Any) -> ImportReport:
    path = directory / "conversation.jsonl"
    path.write_bytes(ledger)
    return the_ledgers(workspace).import_file(path, **options)


def another_database() -> None:
    """Nothing is left of what was, and ids are others than before."""
    # In a transaction, what is still to be checked would forbid it.
    connection.check_constraints()
    empty_all_tables()
    a_conversation("one", "two", "three", workspace=a_workspace("somebody else's"))


def through_a_ledger(directory: Path, conversation_id: int | None = None) -> tuple[bytes, bytes]:
    """The ledger, and that of the copy in another database."""
    ledger = exported(conversation_id)
    assert verified(ledger).findings == ()
    verifier.verify(io.BytesIO(ledger))
    another_database()
    ids = [each.conversation_id for each in imported(ledger, directory).conversations]
    return ledger, exported(None if conversation_id is None else ids[0])


def objects_in(ledger: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ledger.splitlines()]


def a_full_conversation() -> int:
    """A conversation with something of every sort: hostile texts, tools, files, a boundary, summaries of summaries."""
    store, scope = a_store(), Scope(a_workspace().pk)
    conversation_id = a_conversation(
        *(f"Message {n} about the harbour and its seven boats. " * 10 for n in range(60)),
        session_id="everything",
        title="Harbour \u00e9",
        metadata={"b": 1.5, "a": ["\u4e2d", None]},
        overrides={"fresh_tail_count": 4, "large_file_tokens": 4000},
        project="harbour \u00e9",
    ).conversation_id
    store.append_messages(
        conversation_id=conversation_id,
        messages=[
            NewMessage(Role.SYSTEM, "You are careful."),
            NewMessage(Role.USER, "NUL \x00 and a lone \ud800 surrogate", author="ada", idempotency_key="k\u00e9"),
            NewMessage(Role.USER, "\U0001f600 whole", metadata={"z": 1, "a": 1.50, "\x00": ["\udc00", 10**40]}),
            a_tool_call("call_1", path="\u00e9.py", limit=2.50),
            a_tool_result("call_1", "contents \x00"),
            NewMessage(Role.ASSISTANT, parts=(NewPart(PartType.PATCH, patch_files=("a", "b"), metadata={"z": 1}),)),
            NewMessage(Role.ASSISTANT, "done", parts=(NewPart(PartType.STEP_FINISH, step_cost=Decimal("0.10")),)),
            a_tool_result("call_1", "a line of a very long log\n" * 1000),
            NewMessage(Role.ASSISTANT, parts=(NewPart(PartType.STEP_START), NewPart(PartType.REASONING, "thinking"))),
        ],
    )
    CompactionEngine.from_settings(scope).compact(conversation_id=conversation_id)
    SessionHistory.from_settings(scope).summarize_session(conversation_id=conversation_id)
    small = CompactionPolicy(leaf_chunk_tokens=500, condense_fan_in=2, fresh_tail_count=4)
    for n in range(3):
        store.append_messages(
            conversation_id=conversation_id,
            messages=[NewMessage(Role.USER, f"More {n}.{k}: the harbour master counts boats. " * 20) for k in range(6)],
        )
        CompactionEngine(**{**vars(CompactionEngine.from_settings(scope)), "policy": small}).compact(
            conversation_id=conversation_id
        )
    # The second supersedes the first.
    SessionHistory.from_settings(scope).summarize_session(conversation_id=conversation_id)
    HostCompaction.from_settings(scope).record_boundary(
        conversation_id=conversation_id, host_reference="cut 1 \u00e9", metadata={"n": 0.5}
    )
    LargeFileService.from_settings(scope).store(
        conversation_id=conversation_id, content=BOATS, file_name="boats.csv", mime_type="text/csv"
    )
    store.create_message_parts(
        message_id=store.list_messages(conversation_id=conversation_id, limit=1)[0].message_id,
        parts=[NewPart(PartType.AGENT, "a later part"), NewPart(PartType.SNAPSHOT, snapshot_hash="abc")],
    )
    return conversation_id

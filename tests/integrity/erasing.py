"""A conversation that holds a secret in every place where one can be, and what erases it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.storage import InMemoryStorage
from django.db import connection

from compaction.engine import CompactionEngine
from compaction.hosts.host_service import HostCompaction
from compaction.plans.plan_store import CompactionPlans
from conversations.models import Message
from conversations.scope import Scope
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role
from integrity.checker import IntegrityChecker
from integrity.retention.erasure import Erasures
from integrity.retention.types import ErasurePreview, ErasureResult
from retrieval.assembler import ContextAssembler
from retrieval.delegation.expand_query import Delegation
from tests.factories import a_conversation, a_store, a_tool_result, a_workspace, say

WORDS = "There was some talk about the harbour and its boats. " * 12
# Stands in nothing that is not to be erased.
SECRET = "Melpomene"


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> InMemoryStorage:
    storage = InMemoryStorage()
    monkeypatch.setattr("conversations.files.large_files.default_storage", storage)
    monkeypatch.setattr("integrity.retention.erasure.default_storage", storage)
    return storage


def scope() -> Scope:
    return Scope(a_workspace().pk, actor="key 7")


@pytest.fixture
def erasures(storage: InMemoryStorage) -> Erasures:
    return Erasures.from_settings(scope())


def a_secret_conversation(*, compacted: bool = True) -> int:
    """Sixty messages; 20 to 22 hold the secret in every place where a message can have it, and so do its summaries."""
    conversation_id = a_conversation(*(f"{WORDS} {n}" for n in range(1, 20))).conversation_id
    part = NewPart(
        PartType.TOOL, tool_call_id="c1", tool_name="look_up", tool_input={SECRET: [SECRET]},
        tool_output=f"{SECRET} \x00", metadata={"name": SECRET}, file_name=SECRET, patch_files=(SECRET,),
        step_reason=SECRET,
    )  # fmt: skip
    say(
        conversation_id,
        NewMessage(Role.USER, f"My name is {SECRET}. {WORDS} \x00", author=SECRET, idempotency_key=SECRET),
        NewMessage(Role.ASSISTANT, f"Hello {SECRET}! {WORDS}", parts=(part,), metadata={"who": SECRET}),
        a_tool_result("c1", f"{SECRET} was found. {WORDS}"),
        *(f"{WORDS} {n}" for n in range(23, 61)),
    )
    if compacted:
        CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    return conversation_id


def everything_stored() -> str:
    """Every row of every table but those of the queues, as text."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'huey%'")
        tables = [name for (name,) in cursor.fetchall()]
        texts = []
        for table in tables:
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            texts += [text for (text,) in cursor.fetchall()]
    return "\n".join(texts)


def erased(erasures: Erasures, conversation_id: int, **what: Any) -> tuple[ErasurePreview, ErasureResult]:
    preview = erasures.preview_erasure(conversation_id=conversation_id, **what)
    return preview, erasures.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)


def message(conversation_id: int, seq: int) -> MessageRecord:
    found = Message.objects.get(conversation_id=conversation_id, seq=seq)
    return a_store().get_message(message_id=found.pk)


def assert_clean() -> None:
    assert [(each.code, each.findings) for each in IntegrityChecker().run().broken] == []


def is_used(conversation_id: int) -> None:
    """Whatever keeps a record of its own has one of this conversation."""
    assembler = ContextAssembler.from_settings()
    assembler.assemble(conversation_id=conversation_id, query=f"Who is {SECRET}?", keep_receipt=True)
    CompactionPlans.from_settings().plan(conversation_id=conversation_id)
    Delegation.from_settings(Scope(a_workspace().pk)).expand_query(question="Who?", conversation_id=conversation_id)
    HostCompaction.from_settings().record_boundary(conversation_id=conversation_id, host_reference="the first")
    IntegrityChecker.from_settings().run(conversation_id=conversation_id)

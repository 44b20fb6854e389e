"""The vendors' own SDKs take what is assembled of real conversations, compacted, at budgets from tight to ample."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from compaction.engine import CompactionEngine
from conversations.formats import transcript_of
from conversations.formats.neutral import from_neutral
from conversations.scope import Scope
from conversations.types import NewMessage
from retrieval.assembler import ContextAssembler
from tests.conversations.real_data import DATA, conversation_files, needs_data, rows_of
from tests.factories import a_conversation, a_store, a_workspace
from tests.retrieval.vendors import CHECKS

pytestmark = [pytest.mark.django_db, needs_data]

BUDGETS = (500, 2000, 8000, 32_000, 200_000)
# One of each sort: with system messages, results without calls, ids used again, images, another's compaction.
FEW = ("swe_flash", "tau_airline_2_1", "cc_ccl_4379d1bf-ccb1-414e-a", "cc_spotter_4d5611e5-241a-462a-8")


def assembled_by_all(messages: Sequence[NewMessage]) -> None:
    """Store a conversation, assemble it whole and compacted, and have each answer checked."""
    conversation_id = a_conversation(overrides={"leaf_chunk_tokens": 4000, "condense_fan_in": 3}).conversation_id
    for start in range(0, len(messages), 1000):
        a_store().append_messages(conversation_id=conversation_id, messages=messages[start : start + 1000])
    assembler = ContextAssembler.from_settings(Scope(a_workspace().pk))
    for _ in ("whole", "compacted"):
        for budget in BUDGETS:
            neutral = assembler.assemble(conversation_id=conversation_id, budget=budget)
            for format, check in CHECKS.items():
                context = assembler.assemble(conversation_id=conversation_id, budget=budget, format=format)

                check(context)
                assert context.total_tokens == neutral.total_tokens
                told = {item_id for source in context.sources for item_id in source}
                dropped = {item_id for repair in context.repairs for item_id in repair.item_ids}
                system = {item.id for item in neutral.items if item.role == "system" and format == "anthropic"}
                assert told | dropped | system >= {item.id for item in neutral.items}
        CompactionEngine.from_settings().compact(conversation_id=conversation_id)


@pytest.mark.parametrize("name", FEW)
def test_the_vendors_take_a_few_real_conversations(name):
    files = [file for file in conversation_files() if file.name.startswith(name)]

    for file in files:
        assembled_by_all([from_neutral(row) for row in rows_of(file)])

    assert files


@pytest.mark.parametrize("name", ["claude_code_ccl__7acd37a8", "codex_agentcmd__rollout-2025-09-25", "pi__large"])
def test_the_vendors_take_what_agents_wrote_down_themselves(name):
    [file] = (DATA / "originals").glob(f"{name}*.jsonl.gz")
    lines = [(transcript, row) for row in rows_of(file) if (transcript := transcript_of(row))]
    messages = [message for transcript, row in lines if (message := transcript.message_of(row))][:120]

    assembled_by_all(messages)

    assert len(messages) > 50


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", conversation_files(), ids=lambda file: file.name.removesuffix(".jsonl.gz"))
def test_the_vendors_take_every_real_conversation(file):
    assembled_by_all([from_neutral(row) for row in rows_of(file)])

"""The walk of README with real conversations: append, compact, assemble, expand back to the same bytes, check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compaction.engine import CompactionEngine
from compaction.types import Outcome
from conversations.models import Message, Summary
from conversations.types import ConversationRecord
from retrieval.assembler import ContextAssembler
from retrieval.assembly.types import AssembledContext
from tests.conversations.real_data import conversation_files, needs_data, rows_of
from tests.factories import a_store
from tests.flows.walk import assert_clean, assert_every_message_comes_back, imported, real_rows
from tests.round_trip import assert_ledgers_survive

pytestmark = [pytest.mark.django_db, needs_data]

BUDGETS = (500, 2000, 8000, 32_000)
# Conversations of fewer messages may be all fresh tail.
LONG_ENOUGH = 60
# In bytes, as they are kept.
SHORT = 40_000
LONG = 60_000


def assemble(conversation: ConversationRecord, budget: int) -> AssembledContext:
    return ContextAssembler.from_settings().assemble(conversation_id=conversation.conversation_id, budget=budget)


def every_conversation() -> Iterator[Any]:
    """All of them; in the default run the short ones, and the shortest of each kind if it is not long at that."""
    by_size = sorted(conversation_files(), key=lambda file: file.stat().st_size)
    seen = set()
    for file in by_size:
        kind = file.name.split("_")[0]
        is_for_all = file.stat().st_size < (SHORT if kind in seen else LONG)
        seen.add(kind)
        yield pytest.param(file, id=file.name.split(".")[0], marks=[] if is_for_all else pytest.mark.thorough)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("file", [*every_conversation()])
def test_a_real_conversation_is_compacted_and_every_byte_of_it_comes_back(file: Path):
    rows = list(rows_of(file))
    conversation = imported(rows)
    raw_tokens = conversation.counters.active_tokens
    tail = [message.message_id for message in Message.objects.order_by("-seq")[:8]]

    CompactionEngine.from_settings().compact(conversation_id=conversation.conversation_id)

    whole = assemble(conversation, 1_000_000)
    if len(rows) >= LONG_ENOUGH:
        assert whole.total_tokens <= 0.7 * raw_tokens
    assert {f"msg_{message_id}" for message_id in tail} <= {item.id for item in whole.items}
    count = a_store().tokens.count
    for budget in BUDGETS:
        context = assemble(conversation, budget)
        assert context.over_budget or sum(count(item.text) for item in context.items) <= context.total_tokens <= budget
    assert_every_message_comes_back(conversation, rows)
    again = CompactionEngine.from_settings().compact(conversation_id=conversation.conversation_id)
    assert again.outcome is Outcome.NOTHING_TO_DO
    assert_clean(conversation.conversation_id)
    assert_ledgers_survive([conversation.conversation_id])


def test_a_conversation_squeezed_to_depth_three_comes_back_whole():
    rows = real_rows("locomo_30")
    tight = {"leaf_chunk_tokens": 400, "leaf_target_tokens": 100, "condensed_target_tokens": 150, "condense_fan_in": 3}
    conversation = imported(rows, **tight)

    CompactionEngine.from_settings().compact(conversation_id=conversation.conversation_id)

    assert max(Summary.objects.values_list("depth", flat=True)) >= 3
    assert_every_message_comes_back(conversation, rows)
    assert_clean(conversation.conversation_id)

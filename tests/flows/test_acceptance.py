"""The walk of README with real conversations: append, compact, assemble, expand back to the same bytes, check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compaction.engine import CompactionEngine
from compaction.types import Outcome
from conversations.interchange.neutral import from_neutral, to_neutral
from conversations.models import Message, Summary
from conversations.types import ContextItemType, ConversationRecord, NewMessage
from integrity.checker import IntegrityChecker
from retrieval.assembler import ContextAssembler
from retrieval.assembly_types import AssembledContext
from retrieval.engine import RetrievalEngine
from retrieval.slices import joined
from retrieval.types import ExpandedItem
from tests.conversations.real_data import conversation_files, needs_data, rows_of
from tests.factories import a_store

pytestmark = [pytest.mark.django_db, needs_data]

BUDGETS = (500, 2000, 8000, 32_000)
# Conversations of fewer messages may be all fresh tail.
LONG_ENOUGH = 60


def imported(rows: list[dict[str, Any]]) -> ConversationRecord:
    store = a_store()
    conversation = store.open_conversation(session_id=rows[0]["session_id"], overrides={"autocompact_disabled": True})
    messages: list[NewMessage] = [from_neutral(row) for row in rows]
    for start in range(0, len(messages), 500):
        store.append_messages(conversation_id=conversation.conversation_id, messages=messages[start : start + 500])
    return store.get_conversation(conversation_id=conversation.conversation_id)


def assemble(conversation: ConversationRecord, budget: int) -> AssembledContext:
    return ContextAssembler.from_settings().assemble(conversation_id=conversation.conversation_id, budget=budget)


def expanded(root: str) -> Iterator[ExpandedItem]:
    engine = RetrievalEngine.from_settings()
    cursor = None
    while True:
        page = engine.expand(summary_id=root, depth=-1, include_messages=True, token_cap=4000, cursor=cursor)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


def everything_said(conversation: ConversationRecord) -> list[tuple[int, str, Any]]:
    """Every message by way of the context: below its summaries, by expansion, and raw.

    In the order of the context, but for system messages, which no summary takes in: they come in their own place.
    """
    store = a_store()
    said = []
    for item in store.get_context_items(conversation_id=conversation.conversation_id):
        if item.item_type is ContextItemType.MESSAGE:
            message = store.get_message(message_id=item.message_id or 0)
            said.append((message.seq, message.content, message.parts))
        else:
            below = joined(expanded(item.summary_id or ""))
            said += [(each.seq, each.content, each.parts) for each in below]
    system = set(Message.objects.filter(role="system").values_list("seq", flat=True))
    seqs = [seq for seq, _, _ in said if seq not in system]
    assert seqs == sorted(seqs)
    said.sort(key=lambda each: each[0])
    return [(seq, content, [part for part in parts if not part.is_synthetic]) for seq, content, parts in said]


@pytest.mark.parametrize("file", conversation_files(), ids=lambda file: file.name.split(".")[0])
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
    report = IntegrityChecker.from_settings().run(conversation_id=conversation.conversation_id)
    assert report.is_clean, report.broken


def assert_every_message_comes_back(conversation: ConversationRecord, rows: list[dict[str, Any]]) -> None:
    """By expansion and from the raw tail: each once, in order, its content and its parts as they were given."""
    said = everything_said(conversation)
    stored = a_store().list_messages(conversation_id=conversation.conversation_id, limit=len(rows) + 1)
    session_id = rows[0]["session_id"]

    assert [(seq, content) for seq, content, _ in said] == [(n, row["content"]) for n, row in enumerate(rows, 1)]
    assert [to_neutral(message, session_id=session_id, first_seq=0) for message in stored] == rows
    assert [parts for _, _, parts in said] == [
        [part for part in message.parts if not part.is_synthetic] for message in stored
    ]


def test_a_conversation_squeezed_to_depth_three_comes_back_whole():
    rows = list(rows_of(next(file for file in conversation_files() if file.name.startswith("locomo_41"))))
    conversation = imported(rows)
    tight = {
        "autocompact_disabled": False,
        "leaf_chunk_tokens": 700,
        "leaf_target_tokens": 150,
        "condensed_target_tokens": 200,
        "condense_fan_in": 3,
    }
    a_store().configure_conversation(conversation_id=conversation.conversation_id, overrides=tight)

    CompactionEngine.from_settings().compact(conversation_id=conversation.conversation_id)

    assert max(Summary.objects.values_list("depth", flat=True)) >= 3
    assert_every_message_comes_back(conversation, rows)
    assert IntegrityChecker.from_settings().run(conversation_id=conversation.conversation_id).is_clean

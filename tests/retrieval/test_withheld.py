"""What is quarantined is shown to no model, and the receipt and describe say so."""

from __future__ import annotations

import pytest

from compaction.engine import CompactionEngine
from conversations.models import Conversation, Summary
from integrity.repairs.quarantines import Quarantines
from retrieval.assembler import ContextAssembler
from retrieval.assembly.types import AssembledContext, AssemblyReason
from retrieval.engine import RetrievalEngine
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result
from tests.integrity.breaking import breaking
from tests.summaries import a_summary_of


@pytest.fixture
def conversation_id(db: None) -> int:
    return a_conversation(*(f"message {n} about the harbour" for n in range(1, 21))).conversation_id


def assembled(conversation_id: int, **options: object) -> AssembledContext:
    return ContextAssembler.from_settings().assemble(conversation_id=conversation_id, **options)


def quarantined(id: str) -> int:
    return Quarantines.from_settings().quarantine(id=id, reason="It was altered.").quarantine_id


def message_ids(conversation_id: int) -> list[str]:
    return [message.id for message in a_store().list_messages(conversation_id=conversation_id)]


def test_a_quarantined_message_is_not_shown_and_the_receipt_says_why(conversation_id):
    before = assembled(conversation_id)
    id = message_ids(conversation_id)[18]
    quarantined(id)

    context = assembled(conversation_id)

    assert [item.id for item in context.items] == [item.id for item in before.items if item.id != id]
    assert [(line.id, line.included) for line in context.receipt if line.reason is AssemblyReason.QUARANTINED] == [
        (id, False)
    ]
    assert context.left_out.messages == 1
    assert context.total_tokens + context.left_out.tokens == before.total_tokens


def test_what_is_released_is_shown_again(conversation_id):
    before = assembled(conversation_id)
    quarantine_id = quarantined(message_ids(conversation_id)[3])

    Quarantines.from_settings().release(quarantine_id=quarantine_id)

    assert assembled(conversation_id) == before


def test_a_message_with_a_quarantined_part_is_not_shown_and_the_rest_is_what_a_vendor_takes(conversation_id):
    store = a_store()
    store.append_messages(
        conversation_id=conversation_id, messages=[a_tool_call("c1", path="a"), a_tool_result("c1", "contents")]
    )
    call, result = store.list_messages(conversation_id=conversation_id)[-2:]
    quarantined(result.parts[0].part_id)

    shown = {item.id for item in assembled(conversation_id).items}
    for_a_vendor = assembled(conversation_id, format="openai")

    assert call.id in shown and result.id not in shown
    assert "contents" not in str(for_a_vendor.messages)
    assert for_a_vendor.repairs


def test_a_quarantined_summary_is_not_shown_and_not_recalled(conversation_id):
    summary = a_summary_of(a_store(), conversation_id, seqs=range(1, 9))
    quarantined(summary.summary_id)

    context = assembled(conversation_id)
    section = ContextAssembler.from_settings().recall(conversation_id=conversation_id)

    assert summary.summary_id not in {item.id for item in context.items}
    assert summary.summary_id not in section.summary_ids
    assert section.left_out_ids == (summary.summary_id,)


def test_what_a_query_brings_up_is_withheld_too(conversation_id):
    a_summary_of(a_store(), conversation_id, seqs=range(1, 9))
    id = message_ids(conversation_id)[2]
    assert id in {item.id for item in assembled(conversation_id, query="message 3 harbour").items}
    quarantined(id)

    context = assembled(conversation_id, query="message 3 harbour")

    assert id not in {item.id for item in context.items}


def test_describe_says_that_something_is_quarantined(conversation_id):
    id = message_ids(conversation_id)[0]
    quarantined(id)
    engine = RetrievalEngine.from_settings()

    assert engine.describe(id=id).quarantined == "It was altered."
    assert engine.describe(id=message_ids(conversation_id)[1]).quarantined is None


@pytest.fixture
def compacted_id(db: None) -> int:
    texts = (f"Message {n} about harbour {n} and the boats that lie there. " * 30 for n in range(20))
    conversation_id = a_conversation(*texts).conversation_id
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    return conversation_id


def test_a_damaged_summary_is_made_again_from_its_sources(compacted_id):
    summary = Summary.objects.get(conversation_id=compacted_id)
    breaking("UPDATE summaries SET content = 'lies' WHERE summary_id = %s", summary.pk)
    breaking("SET CONSTRAINTS ALL DEFERRED")
    quarantined(summary.pk)

    CompactionEngine.from_settings().redo(conversation_id=compacted_id)

    again = Summary.objects.get(supersedes_id=summary.pk)
    assert (again.first_seq, again.last_seq) == (summary.first_seq, summary.last_seq)
    assert again.content == summary.content
    assert again.pk in {item.id for item in assembled(compacted_id).items}
    assert Conversation.objects.get(pk=compacted_id).quarantined == 1


def test_a_damaged_summary_with_foreign_links_is_not_made_again(compacted_id):
    summary = Summary.objects.get(conversation_id=compacted_id)
    foreign = a_conversation("hello").conversation_id
    [message] = a_store().list_messages(conversation_id=foreign)
    breaking(
        "INSERT INTO summary_messages (summary_id, message_id, ordinal) VALUES (%s, %s, 99)",
        summary.pk,
        message.message_id,
    )
    quarantined(summary.pk)

    CompactionEngine.from_settings().redo(conversation_id=compacted_id)

    assert not Summary.objects.filter(supersedes_id=summary.pk).exists()

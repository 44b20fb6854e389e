"""What is quarantined is shown to no model, and the receipt and describe say so."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from compaction.background.worker import CompactionWorker
from compaction.engine import CompactionEngine
from compaction.models import CompactionRun
from conversations.models import Conversation, Quarantine, Summary
from integrity.repairs.quarantines import Quarantines
from retrieval.assembler import ContextAssembler
from retrieval.assembly.types import AssembledContext, AssemblyReason
from retrieval.engine import RetrievalEngine
from tests.compaction.model_settings import Model, asking_only
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, say
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


def test_the_store_gives_quarantined_summaries_without_their_texts(conversation_id):
    store = a_store()
    leaves = [a_summary_of(store, conversation_id, seqs=seqs) for seqs in (range(1, 5), range(5, 9))]
    above = a_summary_of(store, conversation_id, summaries=leaves)
    held = quarantined(leaves[0].summary_id)

    [withheld, other] = store.get_summary_children(summary_id=above.summary_id)

    assert withheld == store.get_summary(summary_id=leaves[0].summary_id) == replace(leaves[0], content="")
    assert other == store.get_summary(summary_id=leaves[1].summary_id) == leaves[1]
    Quarantines.from_settings().release(quarantine_id=held)
    assert store.get_summary_children(summary_id=above.summary_id) == leaves


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


SECRET = "The door code is qz7751-lighthouse"


@pytest.fixture
def secret_id(db: None) -> int:
    """A compacted conversation whose third message holds the secret, in two depths of summaries."""
    texts = [f"Message {n} about harbour {n} and the boats that lie there. " * 30 for n in range(24)]
    texts[2] = f"{SECRET}. " * 30
    return a_conversation(*texts).conversation_id


def shown_to_models(conversation_id: int) -> str:
    assembler = ContextAssembler.from_settings()
    context = assembler.assemble(conversation_id=conversation_id)
    past = assembler.assemble(conversation_id=conversation_id, as_of=24)
    recalled = assembler.recall(conversation_id=conversation_id, budget=9000, share=1)
    return "\n".join([*(item.text for item in (*context.items, *past.items)), recalled.text])


def test_a_summary_of_what_was_quarantined_later_is_withheld_until_it_is_made_again(secret_id):
    conversation_id = secret_id
    engine = CompactionEngine.from_settings()
    leaf = a_summary_of(a_store(), conversation_id, seqs=range(1, 7), content=f"{SECRET}.")
    above = a_summary_of(a_store(), conversation_id, summaries=[leaf], content=f"As was said: {SECRET}.")
    assert SECRET in shown_to_models(conversation_id)

    quarantine_id = quarantined(message_ids(conversation_id)[2])

    receipt = assembled(conversation_id).receipt
    assert SECRET not in shown_to_models(conversation_id)
    assert [line.id for line in receipt if line.reason is AssemblyReason.QUARANTINED] == [above.summary_id]

    CompactionWorker.from_settings().sweep()
    while CompactionWorker.from_settings().work():
        pass

    [again] = Summary.objects.filter(supersedes_id=above.summary_id)
    assert again.pk in {item.id for item in assembled(conversation_id).items}
    assert "qz7751" not in again.content and "harbour 0" in again.content
    assert "qz7751" not in shown_to_models(conversation_id)
    assert not Summary.objects.filter(content__contains="qz7751").exclude(pk__in=[leaf.summary_id, above.summary_id])

    Quarantines.from_settings().release(quarantine_id=quarantine_id)
    engine.redo(conversation_id=conversation_id)

    assert "qz7751" in Summary.objects.get(supersedes_id=again.pk).content


def test_what_is_quarantined_goes_into_no_summary(secret_id):
    quarantined(message_ids(secret_id)[2])

    CompactionEngine.from_settings().compact(conversation_id=secret_id)

    assert Summary.objects.filter(conversation_id=secret_id).exists()
    assert not Summary.objects.filter(content__contains="qz7751").exists()
    assert "qz7751" not in shown_to_models(secret_id)


def test_a_model_is_not_shown_what_the_summary_before_said_of_what_is_quarantined(secret_id):
    engine = CompactionEngine.from_settings()
    engine.compact(conversation_id=secret_id)
    quarantined(message_ids(secret_id)[2])
    say(secret_id, *(f"message {n} about the harbour and its cranes " * 10 for n in range(20)))
    model = Model()

    asking_only(model, engine).compact(conversation_id=secret_id)

    assert model.requests
    assert not any("qz7751" in request.previous for request in model.requests)


def test_a_quarantine_during_a_run_overtakes_its_summaries(secret_id):
    engine = CompactionEngine.from_settings()
    engine.compact(conversation_id=secret_id)
    run = CompactionRun.objects.get(conversation_id=secret_id)
    quarantined(message_ids(secret_id)[2])
    Quarantine.objects.update(created_at=run.started_at + timedelta(microseconds=1))

    assert "qz7751" not in shown_to_models(secret_id)

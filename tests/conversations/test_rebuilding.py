"""Context and counters follow from messages, summaries and lineage: whatever became of them, they can be made anew."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from compaction.engine import CompactionEngine
from compaction.rendering import context_cost_of
from conversations.content.tokens import TokenEstimator
from conversations.errors import Conflict, NotFound
from conversations.models import ContextItem, Conversation
from conversations.store import derived_context as rebuilding
from integrity.checker import IntegrityChecker
from tests.factories import a_conversation, a_store
from tests.integrity.breaking import breaking
from tests.summaries import a_summary_of

cost_of = context_cost_of(TokenEstimator.from_settings())


def a_compacted_conversation() -> int:
    conversation_id = a_conversation(*(f"Message {n} about the harbour. " * 40 for n in range(40))).conversation_id
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    return conversation_id


def context_of(conversation_id: int, *, with_times: bool = False) -> list[tuple]:
    items = ContextItem.objects.filter(conversation_id=conversation_id).order_by("ordinal")
    columns = ("ordinal", "item_type", "message_id", "summary_id", "token_count")
    return list(items.values_list(*columns, *(["created_at"] if with_times else [])))


def row_of(conversation_id: int) -> dict:
    return Conversation.objects.values().get(pk=conversation_id)


def codes(conversation_id: int | None = None) -> list[str]:
    return [broken.code for broken in IntegrityChecker.from_settings().run(conversation_id=conversation_id).broken]


def rebuilt(conversation_id: int) -> tuple[rebuilding.ContextChange, rebuilding.CountsChange]:
    return rebuilding.rebuild_context(conversation_id, cost_of=cost_of), rebuilding.recount(conversation_id)


@pytest.fixture(scope="module")
def conversation_id(module_rows: None) -> int:
    made = a_compacted_conversation()
    # As at a commit, so that what follows stands alone.
    connection.check_constraints()
    return made


def test_where_nothing_is_wrong_nothing_is_written(conversation_id):
    before = context_of(conversation_id, with_times=True), row_of(conversation_id)

    context, counts = rebuilt(conversation_id)

    assert not context.is_needed and not counts.is_needed
    assert (context_of(conversation_id, with_times=True), row_of(conversation_id)) == before
    assert rebuilding.misfit_ranges(conversation_id) == ()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM context_items WHERE conversation_id = %s",
        "DELETE FROM context_items WHERE conversation_id = %s AND item_type = 'summary'",
        "UPDATE context_items SET ordinal = ordinal + 1000 WHERE conversation_id = %s",
        "UPDATE context_items SET token_count = token_count + 1 WHERE conversation_id = %s",
        "UPDATE conversations SET active_tokens = 0, active_messages = 0, total_tokens = 1 WHERE conversation_id = %s",
        "UPDATE conversations SET next_seq = 2, chain_head = '' WHERE conversation_id = %s",
        "UPDATE conversations SET cold_messages = 7, quarantined = 7 WHERE conversation_id = %s",
    ],
)
def test_what_was_lost_or_altered_is_as_before(conversation_id, damage):
    before = context_of(conversation_id), row_of(conversation_id)
    breaking(damage, conversation_id)
    assert (context_of(conversation_id), row_of(conversation_id)) != before

    context, counts = rebuilt(conversation_id)

    assert context.is_needed or counts.is_needed
    assert (context_of(conversation_id), row_of(conversation_id)) == before
    assert codes() == []


def test_what_another_conversation_shows_of_this_one_comes_back(conversation_id):
    other_id = a_compacted_conversation()
    before = context_of(conversation_id)
    breaking(
        "UPDATE context_items SET conversation_id = %s, ordinal = 5000 WHERE conversation_id = %s AND ordinal = 39",
        other_id,
        conversation_id,
    )

    context = rebuilding.rebuild_context(conversation_id, cost_of=cost_of)
    for each in context.conversation_ids:
        rebuilding.recount(each)

    assert context.conversation_ids == (conversation_id, other_id)
    assert context_of(conversation_id) == before
    assert codes() == []


def test_a_lineage_that_contradicts_itself_gives_no_context(db):
    conversation_id = a_conversation("one", "two", "three").conversation_id
    first = a_summary_of(a_store(), conversation_id, seqs=[1])
    second = a_summary_of(a_store(), conversation_id, seqs=[2])
    breaking("UPDATE summaries SET first_seq = 1 WHERE summary_id = %s", second.summary_id)
    before = context_of(conversation_id)

    with pytest.raises(Conflict, match="two items at 1"):
        rebuilding.rebuild_context(conversation_id, cost_of=cost_of)

    assert context_of(conversation_id) == before
    assert rebuilding.misfit_ranges(conversation_id) == (second.summary_id,)
    assert first.summary_id not in rebuilding.misfit_ranges(conversation_id)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM messages WHERE conversation_id = %s AND seq > 38",
        "UPDATE messages SET chain_hash = '\\x00' WHERE conversation_id = %s AND seq = 40",
    ],
)
def test_a_lost_or_altered_end_still_shows_after_a_recount(conversation_id, damage):
    breaking(damage, conversation_id)

    counts = rebuilding.recount(conversation_id)

    assert (counts.after.next_seq, counts.after.chain_head) == (counts.before.next_seq, counts.before.chain_head)
    assert codes() != []


def test_a_change_for_what_is_another_by_now_is_refused(conversation_id):
    counter = "UPDATE conversations SET total_tokens = %s WHERE conversation_id = %s"
    item = "UPDATE context_items SET token_count = %s WHERE conversation_id = %s AND ordinal = 36"
    for statement in (counter, item):
        breaking(statement, 1, conversation_id)
    counts = rebuilding.count_anew(conversation_id)
    context = rebuilding.context_difference(conversation_id, cost_of=cost_of)
    for statement in (counter, item):
        breaking(statement, 2, conversation_id)

    with pytest.raises(Conflict, match="changed meanwhile"):
        rebuilding.change_counts(counts)
    with pytest.raises(Conflict, match="was changed at 36"), transaction.atomic():
        rebuilding.change_context(context)

    assert row_of(conversation_id)["total_tokens"] == 2


def test_an_unknown_conversation_is_not_found(db):
    with pytest.raises(NotFound):
        rebuilding.rebuild_context(404, cost_of=cost_of)
    with pytest.raises(NotFound):
        rebuilding.recount(404)
    assert connection.in_atomic_block

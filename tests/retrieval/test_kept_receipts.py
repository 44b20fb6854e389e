"""A receipt that is kept says what was shown and why, and what has changed since."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conversations.errors import Invalid, NotFound
from conversations.scope import Scope
from retrieval.assembly.receipts import Receipts
from retrieval.assembly.types import AssemblyReason
from retrieval.models import AssemblyReceipt
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def receipts() -> Receipts:
    return Receipts.from_settings(Scope(a_workspace().pk))


def test_a_kept_receipt_comes_back_as_it_was(assembler, receipts):
    conversation_id = a_conversation(*(f"turn {n} speaks of topic{n}" for n in range(1, 41))).conversation_id
    a_summary_of(a_store(), conversation_id, seqs=range(1, 21))

    context = assembler.assemble(
        conversation_id=conversation_id, budget=400, reserve=50, query="topic7", as_of=39, keep_receipt=True
    )
    kept = receipts.get_receipt(receipt_id=context.receipt_id)

    assert kept.lines == context.receipt
    assert (kept.budget, kept.reserve, kept.total_tokens) == (400, 50, context.total_tokens)
    assert (kept.left_out, kept.as_of, kept.last_seq) == (context.left_out, context.as_of, 39)
    assert {line.reason for line in kept.lines} >= {AssemblyReason.FRESH_TAIL, AssemblyReason.RELEVANT}


def test_without_being_asked_nothing_is_kept(assembler):
    context = assembler.assemble(conversation_id=a_conversation("hello").conversation_id)

    assert context.receipt_id is None
    assert not AssemblyReceipt.objects.exists()


def test_the_same_context_has_the_same_receipt_and_another_one_another(assembler):
    conversation_id = a_conversation("hello", "hi").conversation_id

    def receipt_id(**more):
        return assembler.assemble(conversation_id=conversation_id, keep_receipt=True, **more).receipt_id

    first, again, in_a_format = receipt_id(), receipt_id(), receipt_id(format="openai")
    others = {receipt_id(budget=900), receipt_id(reserve=10), receipt_id(query="hello"), receipt_id(as_of=1)}

    assert first == again == in_a_format
    assert first.startswith("rcp_") and len(first) == 20
    assert len(others | {first}) == 5
    assert AssemblyReceipt.objects.count() == 5


def test_the_newest_receipts_of_a_conversation_are_kept_and_the_answer_names_those_that_made_way(assembler, receipts):
    conversation_id, other_id = (a_conversation("hello", "hi").conversation_id for _ in range(2))
    few = replace(assembler, limits=replace(assembler.limits, kept_receipts=3))

    def kept(budget, conversation_id=conversation_id):
        return few.assemble(conversation_id=conversation_id, budget=budget, keep_receipt=True)

    elsewhere = kept(500, other_id)
    first, second, third = kept(501), kept(502), kept(503)
    first_again, fourth = kept(501), kept(504)

    assert [each.receipts_gone for each in (first, second, third, first_again)] == [()] * 4
    assert first_again.receipt_id == first.receipt_id
    assert fourth.receipts_gone == (second.receipt_id,)
    with pytest.raises(NotFound, match="only a conversation's newest receipts"):
        receipts.get_receipt(receipt_id=second.receipt_id)
    for left in (elsewhere, first, third, fourth):
        assert receipts.get_receipt(receipt_id=left.receipt_id).lines == left.receipt


def test_where_fewer_are_kept_than_before_the_others_go_a_few_at_a_time_and_all_are_named(assembler):
    conversation_id = a_conversation("hello", "hi").conversation_id
    made = [
        assembler.assemble(conversation_id=conversation_id, budget=500 + n, keep_receipt=True).receipt_id
        for n in range(25)
    ]
    one = replace(assembler, limits=replace(assembler.limits, kept_receipts=1))

    gone = [
        one.assemble(conversation_id=conversation_id, budget=400 + n, keep_receipt=True).receipts_gone for n in range(2)
    ]

    assert max(map(len, gone)) < len(made)
    assert {*gone[0], *gone[1]} >= set(made)
    assert AssemblyReceipt.objects.count() == 1


def test_a_receipt_holds_nobodys_words(assembler):
    conversation_id = a_conversation(*(f"turn {n} is about kumquats" for n in range(1, 31))).conversation_id
    a_summary_of(a_store(), conversation_id, seqs=range(1, 11), content="All about kumquats.")

    assembler.assemble(conversation_id=conversation_id, query="kumquats", keep_receipt=True)

    row = AssemblyReceipt.objects.get()
    assert "kumquat" not in json.dumps([row.figures, row.lines])


def test_the_difference_tells_what_came_in_and_what_went_out_and_where_it_is_now(assembler, receipts):
    conversation_id = a_conversation(*(f"turn {n} speaks of topic{n}" for n in range(1, 31))).conversation_id
    before = assembler.assemble(conversation_id=conversation_id, keep_receipt=True)
    summary = a_summary_of(a_store(), conversation_id, seqs=range(1, 11))
    say(conversation_id, "And now?")
    after = assembler.assemble(conversation_id=conversation_id, keep_receipt=True)

    changed = receipts.compare_receipts(receipt_id=before.receipt_id, other=after.receipt_id)

    assert [(line.id, line.included) for line in changed.came_in] == [
        (summary.summary_id, True),
        (after.items[-1].id, True),
    ]
    assert [gone.line.first_seq for gone in changed.went_out] == list(range(1, 11))
    assert {gone.replaced_by for gone in changed.went_out} == {summary.summary_id}
    assert (changed.tokens_before, changed.tokens_after) == (before.total_tokens, after.total_tokens)
    assert changed.unchanged == 20
    assert changed.changed_cost == ()


def test_what_only_had_no_room_any_more_is_replaced_by_nothing(assembler, receipts):
    conversation_id = a_conversation(*(f"turn {n} speaks of topic{n}" for n in range(1, 31))).conversation_id
    ids = [
        assembler.assemble(conversation_id=conversation_id, budget=budget, keep_receipt=True).receipt_id
        for budget in (300, 200)
    ]

    changed = receipts.compare_receipts(receipt_id=ids[0], other=ids[1])

    assert changed.came_in == ()
    assert changed.went_out
    assert {gone.replaced_by for gone in changed.went_out} == {None}


def test_what_costs_something_else_is_told(assembler, receipts):
    conversation_id = a_conversation("hello", "hi").conversation_id
    kept = assembler.assemble(conversation_id=conversation_id, keep_receipt=True)
    row = AssemblyReceipt.objects.get()
    # As if it had been counted by another tokenizer then.
    row.lines[0][2] += 5
    AssemblyReceipt.objects.create(
        receipt_id="rcp_0123456789abcdef", conversation_id=conversation_id, figures=row.figures, lines=row.lines
    )

    changed = receipts.compare_receipts(receipt_id="rcp_0123456789abcdef", other=kept.receipt_id)

    [cost] = changed.changed_cost
    assert cost.id == kept.receipt[0].id
    assert cost.tokens_before - cost.tokens_after == 5
    assert changed.unchanged == 1


def test_receipts_of_others_are_not_found_and_those_of_two_conversations_not_compared(assembler, receipts):
    one, two = (
        assembler.assemble(conversation_id=a_conversation("hello").conversation_id, keep_receipt=True).receipt_id
        for _ in range(2)
    )
    stranger = Receipts.from_settings(Scope(a_workspace("elsewhere").pk))

    conversation_id = receipts.get_receipt(receipt_id=one).conversation_id
    for unknown in (
        lambda: stranger.get_receipt(receipt_id=one),
        lambda: stranger.list_receipts(conversation_id=conversation_id),
        lambda: receipts.get_receipt(receipt_id="rcp_\x00"),
    ):
        with pytest.raises(NotFound):
            unknown()
    with pytest.raises(Invalid, match="conversation"):
        receipts.compare_receipts(receipt_id=one, other=two)


@pytest.mark.parametrize(("budget", "reserve"), [(1000, 1000), (1000, 1500), (1, 1)])
def test_a_reserve_that_leaves_nothing_is_refused_with_the_sum(assembler, budget, reserve):
    conversation_id = a_conversation("hello").conversation_id

    with pytest.raises(Invalid, match=f"{budget} less {reserve} leaves {budget - reserve}"):
        assembler.assemble(conversation_id=conversation_id, budget=budget, reserve=reserve)


def test_what_is_reserved_is_left_free(assembler):
    conversation_id = a_conversation(*(f"message {n} " + "word " * 40 for n in range(60))).conversation_id

    with_reserve = assembler.assemble(conversation_id=conversation_id, budget=2000, reserve=800)
    smaller = assembler.assemble(conversation_id=conversation_id, budget=1200)

    assert with_reserve.items == smaller.items
    assert with_reserve.total_tokens <= 1200
    assert (with_reserve.budget, with_reserve.reserve) == (2000, 800)


def test_what_is_kept_is_listed_newest_first_without_its_decisions(assembler, receipts):
    conversation_id = a_conversation("hello", "hi").conversation_id
    for given in ({"budget": 900}, {"query": "hello"}, {"as_of": 1}):
        assembler.assemble(conversation_id=conversation_id, keep_receipt=True, **given)
    for place, row in enumerate(AssemblyReceipt.objects.order_by("figures__last_seq", "-figures__budget")):
        AssemblyReceipt.objects.filter(pk=row.pk).update(created_at=f"2026-01-0{place + 1}T00:00:00Z")

    past, for_query, small = reversed(receipts.list_receipts(conversation_id=conversation_id))
    newest = receipts.list_receipts(conversation_id=conversation_id, limit=1)

    assert (past.last_seq, past.as_of.last_seq) == (1, 1)
    assert (for_query.is_for_query, small.is_for_query, small.budget) == (True, False, 900)
    assert newest == [small]

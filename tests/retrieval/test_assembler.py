"""What a model gets to see of a stored conversation."""

from __future__ import annotations

from itertools import product

import pytest

from compaction.policy import CompactionPolicy
from compaction.rendering import render_summary
from conversations.store.conversations import ConversationStore
from conversations.types import ContextItemType, NewMessage, NewPart, PartType, Role
from retrieval.assembly.types import AssembledContext, AssemblyReason, BudgetSource
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, say
from tests.statements import analyze, counted_statements, rows_gone_through
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def store() -> ConversationStore:
    return a_store()


def ids(context: AssembledContext) -> list[str]:
    return [item.id for item in context.items]


def seqs(context: AssembledContext) -> list[int]:
    return [item.first_seq for item in context.items]


def a_compacted_conversation(store: ConversationStore, messages: int, *, fresh: int = 10, leaf: int = 20) -> int:
    """A conversation whose messages but for the newest are covered by summaries of `leaf` messages each."""
    conversation = a_conversation(*(f"turn {n} speaks of topic{n} and of nothing else" for n in range(1, messages + 1)))
    for first in range(1, messages - fresh, leaf):
        a_summary_of(store, conversation.conversation_id, seqs=range(first, min(first + leaf, messages - fresh + 1)))
    return conversation.conversation_id


def test_a_conversation_that_fits_is_shown_whole_and_in_order(assembler):
    conversation = a_conversation("first", "second", "third")

    context = assembler.assemble(conversation_id=conversation.conversation_id)

    assert [item.text for item in context.items] == ["first", "second", "third"]
    assert [item.role for item in context.items] == [Role.USER, Role.ASSISTANT, Role.USER]
    assert context.total_tokens == conversation.counters.active_tokens
    assert not context.over_budget
    assert (context.left_out.messages, context.left_out.summaries, context.left_out.tokens) == (0, 0, 0)


def test_the_budget_is_the_callers_or_the_conversations_or_the_operators(assembler):
    own = a_conversation("hello", overrides={"model_token_budget": 5000}).conversation_id
    other = a_conversation("hello").conversation_id

    asked, overridden, default = (
        assembler.assemble(conversation_id=own, budget=900),
        assembler.assemble(conversation_id=own),
        assembler.assemble(conversation_id=other),
    )

    assert (asked.budget, asked.budget_source) == (900, BudgetSource.REQUEST)
    assert (overridden.budget, overridden.budget_source) == (5000, BudgetSource.CONVERSATION)
    assert (default.budget, default.budget_source) == (
        CompactionPolicy.from_settings().model_token_budget,
        BudgetSource.SETTINGS,
    )


def test_old_messages_go_first_and_the_receipt_counts_them(assembler):
    conversation = a_conversation(*(f"message {n} " + "word " * 40 for n in range(40)))
    context = assembler.assemble(conversation_id=conversation.conversation_id, budget=1000)

    shown = len(context.items)
    assert seqs(context) == list(range(41 - shown, 41))
    assert 500 < context.total_tokens <= 1000
    assert context.left_out.messages == 40 - shown
    assert context.left_out.tokens == conversation.counters.active_tokens - context.total_tokens
    left_out = [line for line in context.receipt if not line.included]
    assert [line.first_seq for line in left_out] == list(range(40 - shown, 0, -1))
    assert {line.reason for line in left_out} == {AssemblyReason.BUDGET}


def test_a_summary_is_shown_as_the_element_that_says_how_to_open_it(assembler, store):
    conversation_id = a_conversation(*(f"message {n}" for n in range(1, 21))).conversation_id
    summary = a_summary_of(store, conversation_id, seqs=range(1, 11))

    context = assembler.assemble(conversation_id=conversation_id)

    first = context.items[0]
    assert first.text == render_summary(summary)
    assert (first.id, first.kind, first.role) == (summary.summary_id, ContextItemType.SUMMARY, Role.USER)
    assert (first.first_seq, first.last_seq) == (1, 10)
    assert seqs(context)[1:] == list(range(11, 21))


@pytest.mark.parametrize("says_more", [True, False])
def test_results_that_a_user_carries_are_a_question_only_with_words_beside_them(assembler, says_more):
    conversation_id = a_conversation("so far").conversation_id
    say(conversation_id, "repair the flaky test", a_tool_call("call_1"))
    words = (NewPart(PartType.TEXT, text_content="rather delete it"),) if says_more else ()
    result = NewPart(PartType.TOOL, tool_call_id="call_1", tool_output="42", tool_status="completed")
    say(conversation_id, NewMessage(Role.USER, parts=(result, *words)))
    say(conversation_id, *(NewMessage(Role.ASSISTANT, f"step {n} " + "word " * 40) for n in range(200)))

    context = assembler.assemble(conversation_id=conversation_id, budget=100_000)

    [pinned] = [line.first_seq for line in context.receipt if line.reason is AssemblyReason.PINNED]
    assert pinned == (4 if says_more else 2)


def test_the_mandatory_part_is_shown_even_over_budget_and_the_answer_says_so(assembler):
    conversation_id = a_conversation(*("word " * 50 for _ in range(20))).conversation_id

    context = assembler.assemble(conversation_id=conversation_id, budget=10)

    assert context.over_budget
    assert seqs(context) == list(range(13, 21))
    assert {line.reason for line in context.receipt if line.included} == {AssemblyReason.FRESH_TAIL}


def test_a_tool_call_is_never_shown_without_its_result(assembler, store):
    conversation_id = a_conversation("Read everything.").conversation_id
    for n in range(12):
        say(
            conversation_id,
            a_tool_call(f"call_{n}", path=f"file_{n}.py"),
            a_tool_result(f"call_{n}", ("kumquat " if n == 2 else "") + f"contents {n} " + "word " * n * 5),
            NewMessage(Role.ASSISTANT, f"I have read file {n}."),
        )
    a_summary_of(store, conversation_id, seqs=range(2, 17))

    for budget, query in product(range(60, 1400, 110), (None, "kumquat")):
        context = assembler.assemble(conversation_id=conversation_id, budget=budget, query=query)

        parts = [part for item in context.items for part in item.parts]
        calls = {part.tool_call_id for part in parts if part.tool_status == "pending"}
        assert calls == {part.tool_call_id for part in parts if part.tool_output is not None}


def test_a_query_brings_back_the_words_that_a_summary_stands_for(assembler, store):
    conversation_id = a_compacted_conversation(store, 120)

    context = assembler.assemble(conversation_id=conversation_id, query="topic33")

    (found,) = (item for item in context.items if item.is_recalled)
    assert found.text == "turn 33 speaks of topic33 and of nothing else"
    before = context.items[context.items.index(found) - 1]
    assert (before.kind, before.first_seq, before.last_seq) == (ContextItemType.SUMMARY, 21, 40)
    assert next(line for line in context.receipt if line.id == found.id).reason is AssemblyReason.RELEVANT


def test_a_query_finds_what_lies_behind_the_reach_of_the_budget(assembler):
    conversation_id = a_conversation(*(f"message {n} " + "word " * 50 for n in range(700))).conversation_id
    say(conversation_id, "so be it")
    old = a_conversation(
        "the kumquat lies in the cellar", *(f"message {n} " + "word " * 50 for n in range(700))
    ).conversation_id

    context = assembler.assemble(conversation_id=old, budget=1500, query="where is the kumquat")

    assert context.items[0].text == "the kumquat lies in the cellar"
    assert not context.items[0].is_recalled
    assert context.total_tokens <= 1500


def test_a_recalled_exchange_comes_back_whole(assembler, store):
    conversation_id = a_conversation("Read everything.").conversation_id
    say(conversation_id, a_tool_call("call_1", path="a.py"))
    say(conversation_id, *(NewMessage(Role.ASSISTANT, f"still reading, step {n}") for n in range(3, 12)))
    say(conversation_id, a_tool_result("call_1", "a kumquat grows here"))
    say(conversation_id, *(f"message {n}" for n in range(13, 53)))
    a_summary_of(store, conversation_id, seqs=range(1, 41))

    context = assembler.assemble(conversation_id=conversation_id, budget=1000, query="kumquat")

    recalled = {item.first_seq for item in context.items if item.is_recalled}
    assert recalled.issuperset(range(2, 13))
    assert not recalled & set(range(20, 41))


def test_the_exchanges_of_all_hits_are_looked_up_at_once(assembler, store):
    asked = {}
    for exchanges in (1, 9):
        conversation_id = a_conversation("Read everything.").conversation_id
        for number in range(9):
            found = "a kumquat grows here" if number < exchanges else "nothing grows here"
            say(conversation_id, a_tool_call(f"call_{number}", path=f"{number}.py"))
            say(conversation_id, a_tool_result(f"call_{number}", found))
            say(conversation_id, *(f"note {number}" for _ in range(60)))
        a_summary_of(store, conversation_id, seqs=range(1, 541))

        with counted_statements() as sent:
            context = assembler.assemble(conversation_id=conversation_id, query="kumquat")

        recalled = {item.first_seq for item in context.items if item.is_recalled}
        assert recalled == {seq for number in range(exchanges) for seq in (2 + 62 * number, 3 + 62 * number)}
        asked[exchanges] = len(sent)
    assert asked[9] == asked[1]


def test_a_hit_deep_below_condensed_summaries_leads_to_the_one_that_is_shown(assembler, store):
    conversation_id = a_conversation(*(f"turn {n} speaks of topic{n}" for n in range(1, 61))).conversation_id
    leaves = [a_summary_of(store, conversation_id, seqs=range(first, first + 10)) for first in (1, 11, 21, 31)]
    top = a_summary_of(store, conversation_id, seqs=[41], summaries=leaves)

    context = assembler.assemble(conversation_id=conversation_id, query="topic15")

    assert [(item.id, item.is_recalled) for item in context.items[:2]][0] == (top.summary_id, False)
    assert (context.items[1].first_seq, context.items[1].is_recalled) == (15, True)


def test_a_query_that_finds_nothing_changes_nothing(assembler, store):
    conversation_id = a_compacted_conversation(store, 60)
    without = ids(assembler.assemble(conversation_id=conversation_id))

    for query in ("", "   ", "the", "zzzznothing", "\x00", "a\ud800b", "((", "'; DROP TABLE messages"):
        assert ids(assembler.assemble(conversation_id=conversation_id, query=query)) == without


def test_the_receipt_of_a_long_context_is_short_and_still_adds_up(assembler, store):
    conversation_id = a_compacted_conversation(store, 900, fresh=600, leaf=30)
    whole = store.get_context_items(conversation_id=conversation_id)

    context = assembler.assemble(conversation_id=conversation_id, budget=1200)

    assert len(context.receipt) < len(context.items) + 110
    assert [line.running_total for line in context.receipt] == sorted(line.running_total for line in context.receipt)
    assert sum(line.messages for line in context.receipt) == 600
    assert sum(line.summaries for line in context.receipt) == 10
    assert context.left_out.summaries == 10
    assert sum(line.tokens for line in context.receipt) == sum(item.token_count for item in whole)


def test_of_a_long_conversation_only_the_part_that_can_be_shown_is_read(assembler):
    conversation_id = a_conversation(*(f"message {n} " + "word " * 20 for n in range(2500))).conversation_id
    analyze("context_items, messages, message_parts")
    items, messages = rows_gone_through("context_items"), rows_gone_through("messages")

    context = assembler.assemble(conversation_id=conversation_id, budget=1000)

    assert len(context.items) > 20
    assert rows_gone_through("context_items") - items < 800
    assert rows_gone_through("messages") - messages < 800


def test_what_must_be_shown_is_shown_however_far_back_it_lies(assembler):
    conversation_id = a_conversation("Port the parser.").conversation_id
    say(conversation_id, NewMessage(Role.SYSTEM, "Be careful."))
    say(conversation_id, *(NewMessage(Role.ASSISTANT, f"step {n} " + "word " * 9) for n in range(900)))

    with counted_statements() as sent:
        context = assembler.assemble(conversation_id=conversation_id, budget=1000)

    assert [item.text for item in context.items[:2]] == ["Port the parser.", "Be careful."]
    # The conversation, its context, messages and parts.
    assert len(sent) <= 4


def test_of_many_summaries_only_those_that_can_be_shown_and_some_behind_them_are_read(assembler, store):
    conversation_id = a_compacted_conversation(store, 400, fresh=8, leaf=2)
    before = rows_gone_through("summaries")
    whole = assembler.assemble(conversation_id=conversation_id)
    of_all = rows_gone_through("summaries") - before

    context = assembler.assemble(conversation_id=conversation_id, budget=800)

    assert len(whole.items) == 204
    assert rows_gone_through("summaries") - before - of_all < 0.75 * of_all
    assert ids(context) == ids(whole)[-len(context.items) :]
    assert context.total_tokens + whole.items[-len(context.items) - 1].tokens > 800
    assert sum(line.summaries for line in context.receipt) == 196


def test_uneven_sizes_are_no_hindrance(assembler, store):
    # The long messages make the short ones look dearer than they are, and a first page of them reach too short.
    conversation_id = a_conversation(*("word " * 1500 for _ in range(300))).conversation_id
    say(conversation_id, *(f"note {n}" for n in range(1000)))
    say(conversation_id, *(f"note {n}" for n in range(1000)))

    context = assembler.assemble(conversation_id=conversation_id, budget=12_000)

    assert seqs(context) == list(range(2301 - len(context.items), 2301))
    tokens = [item.token_count for item in store.get_context_items(conversation_id=conversation_id)]
    assert context.total_tokens + tokens[-len(context.items) - 1] > 12_000


def test_an_exchange_that_began_before_the_reach_of_the_budget_comes_back_whole(assembler):
    conversation_id = a_conversation(*(f"message {n}" for n in range(300))).conversation_id
    say(conversation_id, a_tool_call("call_1", path="a.py"))
    say(conversation_id, *(NewMessage(Role.ASSISTANT, f"reading {n}") for n in range(60)))
    say(conversation_id, a_tool_result("call_1", "a kumquat grows here"))
    say(conversation_id, *(f"note {n}" for n in range(390)))
    shown = []

    for budget in range(800, 1600, 100):
        context = assembler.assemble(conversation_id=conversation_id, budget=budget, query="kumquat")
        shown.append({301, 362} & set(seqs(context)))

    assert {301, 362} in shown
    assert all(pair in (set(), {301, 362}) for pair in shown)


def test_what_a_message_was_comes_with_all_its_parts_exactly(assembler, store):
    conversation_id = a_conversation().conversation_id
    said = NewMessage(
        Role.ASSISTANT,
        parts=(
            NewPart(PartType.REASONING, text_content="let me\x00see"),
            NewPart(PartType.TEXT, text_content="fine \ud800"),
            NewPart(PartType.PATCH, patch_files=("a.py", "b.py"), patch_hash="abc"),
            NewPart(PartType.TOOL, tool_call_id="c", tool_name="run", tool_input={"z": 1, "a": 2.50}, metadata=[1]),
        ),
        author="ada",
        metadata={"b": 1, "a": 1.0},
    )
    say(conversation_id, said)

    (item,) = assembler.assemble(conversation_id=conversation_id).items

    stored = store.list_messages(conversation_id=conversation_id)[0]
    assert item.parts == stored.parts
    assert (item.text, item.author, item.metadata, item.created_at) == (
        stored.content,
        "ada",
        said.metadata,
        stored.created_at,
    )
    assert list(item.metadata) == ["b", "a"]


def test_what_compaction_notes_on_a_message_is_not_shown(assembler, store):
    conversation_id = a_conversation("hello").conversation_id
    message = store.list_messages(conversation_id=conversation_id)[0]
    note = NewPart(PartType.COMPACTION, is_synthetic=True, is_ignored=True, compaction_auto=True)
    said = NewPart(PartType.COMPACTION, text_content="the host compacted here")
    store.create_message_parts(message_id=message.message_id, parts=[note, said])

    (item,) = assembler.assemble(conversation_id=conversation_id).items

    assert [part.text_content for part in item.parts] == ["the host compacted here"]

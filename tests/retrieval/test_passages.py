"""With a query, a long message is shown in part where the whole would push others out, and says so."""

from __future__ import annotations

import pytest

from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS, TokenEstimator
from conversations.formats.rendered import MessageFormat
from conversations.types import NewMessage, Role
from retrieval.assembly.receipts import Receipts
from retrieval.assembly.types import AssembledContext, AssembledItem
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db

PADDING = "Many other things are of some interest here as well. " * 40


def a_page(number: int) -> str:
    return f"{PADDING}The kumquat of shelf {number} has ripened. {PADDING}"


def pages(number: int) -> list[str]:
    """Questions, each with a page that answers it, and then eight short turns."""
    asked = [text for n in range(number) for text in (f"And shelf {n}?", a_page(n))]
    return [*asked, *(f"note {n}" for n in range(8))]


def in_part(context: AssembledContext) -> list[AssembledItem]:
    return [item for item in context.items if item.content_total is not None]


def content_of(item: AssembledItem) -> str:
    """What is shown of the message, without the line above it."""
    return item.text.partition("\n")[2]


def test_pages_that_do_not_all_fit_are_shown_by_the_passage_that_answers(assembler):
    texts = pages(12)
    conversation = a_conversation(*texts)

    context = assembler.assemble(conversation_id=conversation.conversation_id, budget=2500, query="kumquat shelf")

    assert len(in_part(context)) == 12
    count = TokenEstimator.from_settings().count
    for item in in_part(context):
        page = texts[item.first_seq - 1]
        assert content_of(item) == page[item.content_offset : item.content_end]
        assert "The kumquat of shelf" in content_of(item)
        place = f"characters {item.content_offset + 1}-{item.content_end} of {len(page)}"
        assert item.text.startswith(f"[{item.id}, message {item.first_seq}, {place}; describe {item.id} opens it]\n")
        assert item.tokens == count(item.text) + MESSAGE_OVERHEAD_TOKENS
    assert context.total_tokens == sum(item.tokens for item in context.items) <= 2500


def test_a_page_that_pushes_nothing_out_is_shown_whole(assembler):
    texts = pages(1)
    conversation = a_conversation(*texts)

    context = assembler.assemble(conversation_id=conversation.conversation_id, budget=2500, query="kumquat")

    assert [item.text for item in context.items] == texts


def test_the_best_answers_are_whole_if_there_is_room(assembler):
    conversation = a_conversation(*pages(6))

    context = assembler.assemble(conversation_id=conversation.conversation_id, budget=4200, query="kumquat shelf 3")

    shown = {item.first_seq: item.content_total is None for item in context.items}
    assert shown[8]
    assert not all(shown[2 * n + 2] for n in range(6))


def test_without_a_query_every_message_is_whole(assembler):
    conversation = a_conversation(*pages(12))

    context = assembler.assemble(conversation_id=conversation.conversation_id, budget=2500)

    assert not in_part(context)


def test_a_fresh_tail_that_leaves_no_room_is_shown_in_part_but_for_the_newest_turn(assembler):
    texts = ["The kumquat is in the cellar.", "Thank you.", *(text for n in range(6) for text in (f"ask {n}", PADDING))]
    conversation = a_conversation(*texts)

    context = assembler.assemble(conversation_id=conversation.conversation_id, budget=1500, query="kumquat")

    assert not context.over_budget
    assert context.items[0].text == texts[0]
    assert [item.text for item in context.items[-2:]] == texts[-2:]
    assert {item.first_seq for item in in_part(context)} <= {8, 10, 12}
    assert [item.first_seq for item in context.items[-8:]] == list(range(7, 15))


def test_a_result_in_part_stays_with_its_call(assembler):
    store, conversation_id = a_store(), a_conversation("Read the shelves.").conversation_id
    for n in range(8):
        store.append_messages(
            conversation_id=conversation_id,
            messages=[a_tool_call(f"call_{n}", path=f"{n}.md"), a_tool_result(f"call_{n}", a_page(n))],
        )
    notes = [NewMessage(Role.USER, f"note {n}") for n in range(8)]
    store.append_messages(conversation_id=conversation_id, messages=notes)

    asked = {"conversation_id": conversation_id, "budget": 2500, "query": "kumquat"}
    context = assembler.assemble(**asked)
    sent = assembler.assemble(**asked, format=MessageFormat.OPENAI).messages

    assert in_part(context)
    for item in in_part(context):
        [part] = item.parts
        assert (item.role, part.tool_output) == (Role.TOOL, item.text)
    results = [each["content"] for each in sent if each["role"] == "tool"]
    assert results == [item.text for item in context.items if item.role is Role.TOOL]


def test_a_page_below_a_summary_is_recalled_in_part_then_and_now(assembler):
    conversation = a_conversation(*pages(12), "note 8", "note 9")
    conversation_id = conversation.conversation_id
    a_summary_of(a_store(), conversation_id, seqs=range(1, 25))
    asked = {"conversation_id": conversation_id, "budget": 2500, "query": "kumquat shelf"}
    context = assembler.assemble(**asked)
    assert assembler.assemble(**asked) == context

    past = assembler.assemble(**asked, as_of=conversation.counters.message_count)

    assert {item.is_recalled for item in in_part(context)} == {True}
    assert past.items == context.items


def test_the_receipt_tells_what_is_left_out_of_a_message(assembler):
    conversation_id = a_conversation(*pages(12)).conversation_id
    whole = {item.message_id: item.token_count for item in a_store().get_context_items(conversation_id=conversation_id)}

    context = assembler.assemble(conversation_id=conversation_id, budget=2500, query="kumquat", keep_receipt=True)
    kept = Receipts.from_settings().get_receipt(receipt_id=context.receipt_id)

    assert kept.lines == context.receipt
    cut = {line.id: line for line in kept.lines if line.tokens_left_out}
    assert cut.keys() == {item.id for item in in_part(context)}
    for id, line in cut.items():
        assert line.tokens + line.tokens_left_out == whole[int(id.removeprefix("msg_"))]
    assert sum(line.tokens + line.tokens_left_out for line in kept.lines) == sum(whole.values())
    assert context.total_tokens + context.left_out.tokens == sum(whole.values())

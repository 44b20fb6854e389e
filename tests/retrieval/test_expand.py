"""Opening summaries again: a page at a time, in order, every byte."""

from __future__ import annotations

import random

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.content.tokens import TokenEstimator
from conversations.errors import Invalid, NotFound
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, PartType, Role
from retrieval.engine import RetrievalEngine
from retrieval.expansion import expand
from retrieval.policy import RetrievalPolicy
from retrieval.slices import joined, views
from retrieval.types import ExpandedItem, ExpandResult, ItemKind
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace
from tests.statements import counted_statements, rows_gone_through
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


def engine(**policy) -> RetrievalEngine:
    return RetrievalEngine(
        policy=RetrievalPolicy(**policy), tokens=TokenEstimator("o200k_base"), scope=Scope(a_workspace().pk)
    )


def pages(summary_id: str, **options) -> list[ExpandResult]:
    reader = engine()
    found = [reader.expand(summary_id=summary_id, **options)]
    while found[-1].cursor is not None:
        found.append(reader.expand(summary_id=summary_id, **options, cursor=found[-1].cursor))
    return found


def items_of(results: list[ExpandResult]) -> list[ExpandedItem]:
    return [item for result in results for item in result.items]


@pytest.fixture
def graph():
    """Messages 1 to 9: two leaves and a straggler in one condensed summary, and a third leaf, all below one root."""
    number = a_conversation(*(f"message {seq} " * 5 for seq in range(1, 10))).conversation_id
    store = a_store()
    first = a_summary_of(store, number, seqs=[1, 2, 4])
    second = a_summary_of(store, number, seqs=[5, 6])
    middle = a_summary_of(store, number, seqs=[3], summaries=[first, second])
    third = a_summary_of(store, number, seqs=[7, 8])
    root = a_summary_of(store, number, summaries=[middle, third])
    return number, first, second, middle, third, root


def test_one_level_is_opened_by_default(graph):
    _, _, _, middle, third, root = graph

    result = engine().expand(summary_id=root.summary_id)

    assert [item.id for item in result.items] == [middle.summary_id, third.summary_id]
    assert {(item.of, item.level, item.kind) for item in result.items} == {(root.summary_id, 1, ItemKind.SUMMARY)}
    assert [item.content for item in result.items] == [middle.content, third.content]
    assert (result.truncated, result.cursor, result.messages_below) == (False, None, 8)


def test_a_leaf_gives_its_messages_when_they_are_asked_for(graph):
    _, first, *_ = graph

    without = engine().expand(summary_id=first.summary_id)
    opened = engine().expand(summary_id=first.summary_id, include_messages=True)

    assert without.items == ()
    assert "3 messages" in (without.note or "")
    assert [item.first_seq for item in opened.items] == [1, 2, 4]
    assert opened.items[0].content == "message 1 " * 5


def test_a_leaf_of_one_message_says_so_as_one_would():
    number = a_conversation("the only one").conversation_id
    leaf = a_summary_of(a_store(), number, seqs=[1])

    found = engine().expand(summary_id=leaf.summary_id)

    assert "made from 1 message;" in (found.note or "")


def test_everything_lies_in_the_order_of_the_conversation(graph):
    _, first, second, middle, third, root = graph

    found = items_of(pages(root.summary_id, depth=-1, include_messages=True))

    assert [item.id if item.kind is ItemKind.SUMMARY else item.first_seq for item in found] == [
        middle.summary_id, first.summary_id, 1, 2, 3, 4, second.summary_id, 5, 6, third.summary_id, 7, 8,
    ]  # fmt: skip
    straggler = next(item for item in found if item.first_seq == 3)
    assert (straggler.of, straggler.level) == (middle.summary_id, 2)


def test_a_direct_message_stands_between_the_summaries_beside_it(graph):
    _, first, second, middle, *_ = graph

    found = engine().expand(summary_id=middle.summary_id, include_messages=True).items

    assert [item.id if item.kind is ItemKind.SUMMARY else item.first_seq for item in found] == [
        first.summary_id, 3, second.summary_id,
    ]  # fmt: skip


def test_the_depth_says_where_opening_ends(graph):
    _, first, second, middle, third, root = graph

    two_levels = engine().expand(summary_id=root.summary_id, depth=2, include_messages=True).items

    assert [item.id if item.kind is ItemKind.SUMMARY else item.first_seq for item in two_levels] == [
        middle.summary_id, first.summary_id, 3, second.summary_id, third.summary_id, 7, 8,
    ]  # fmt: skip


@pytest.mark.parametrize("cap", [1, 7, 40, 4000])
def test_no_page_costs_more_than_its_cap_and_nothing_is_lost_or_doubled(graph, cap):
    *_, root = graph
    everything = items_of(pages(root.summary_id, depth=-1, include_messages=True))

    found = pages(root.summary_id, depth=-1, include_messages=True, token_cap=cap)

    assert all(result.tokens <= cap for result in found)
    assert all(result.items for result in found)
    assert [(m.seq, m.content) for m in joined(items_of(found))] == [(m.seq, m.content) for m in joined(everything)]
    texts: dict[str, str] = {}
    for item in items_of(found):
        texts[item.id] = texts.get(item.id, "") + item.content
    assert list(texts) == [item.id for item in everything]
    assert texts == {item.id: item.content for item in everything}


def test_a_message_larger_than_a_page_comes_in_slices():
    content = "".join(random.Random(1).choices("abcdefgh ✓数🎉\n", k=30_000))
    number = a_conversation(content, "the end").conversation_id
    leaf = a_summary_of(a_store(), number, seqs=[1, 2])

    found = pages(leaf.summary_id, include_messages=True)

    assert len(found) > 2
    slices = [item for item in items_of(found) if item.first_seq == 1]
    assert {item.content_total for item in slices} == {len(content)}
    assert [item.complete for item in slices] == [False] * (len(slices) - 1) + [True]
    assert [message.content for message in joined(items_of(found))] == [content, "the end"]


def test_huge_parts_come_in_slices_too():
    image = "".join(random.Random(2).choices("ABCDEFGHIJ0123456789+/", k=40_000))
    parts = (
        NewPart(PartType.TEXT, text_content="Look at this."),
        NewPart(PartType.FILE, file_name="a.png", file_mime="image/png", file_url=f"data:image/png;base64,{image}"),
        NewPart(PartType.REASONING, text_content="lone \ud800 and \x00", metadata={"b": 1, "a": [1.5, None]}),
    )
    store, conversation = a_store(), a_conversation()
    store.append_messages(conversation_id=conversation.conversation_id, messages=[NewMessage(Role.USER, parts=parts)])
    leaf = a_summary_of(store, conversation.conversation_id, seqs=[1])

    found = pages(leaf.summary_id, include_messages=True, token_cap=500)

    (message,) = joined(items_of(found))
    assert message.parts == store.list_messages(conversation_id=conversation.conversation_id)[0].parts
    assert all(result.tokens <= 500 for result in found)


def test_tool_calls_and_results_come_back_with_their_parts():
    store, conversation = a_store(), a_conversation("please read it")
    store.append_messages(
        conversation_id=conversation.conversation_id,
        messages=[
            a_tool_call("call_1", path="src/a.py", z=1, a=2),
            a_tool_result("call_1", "import os\n" * 50),
        ],
    )
    leaf = a_summary_of(store, conversation.conversation_id, seqs=[1, 2, 3])

    found = engine().expand(summary_id=leaf.summary_id, include_messages=True)

    stored = store.list_messages(conversation_id=conversation.conversation_id)
    assert [(m.content, m.parts) for m in joined(found.items)] == [(m.content, m.parts) for m in stored]
    # The tool's output is not said twice.
    assert found.tokens < 1.6 * sum(message.token_count for message in stored)


def test_parts_are_seen_as_they_are_stored_whether_all_they_say_is_text_or_not():
    parts = (
        NewPart(PartType.REASONING, text_content="I will have to look at this file before I say anything."),
        NewPart(PartType.TOOL, tool_call_id="call_1", tool_name="read", tool_input={"z": 1.50, "a": ["\x00", 10**20]}),
        NewPart(
            PartType.TOOL, tool_call_id="call_2", tool_name="read", tool_input={"path": "a file with a long name.py"}
        ),
        NewPart(PartType.FILE, file_mime="image/png", file_name="a.png", is_synthetic=False),
        NewPart(PartType.TEXT, text_content="Said: \ud800", metadata={"kind": "aside", "n": None}),
    )
    store, conversation = a_store(), a_conversation()
    number = conversation.conversation_id
    store.append_messages(conversation_id=number, messages=[NewMessage(Role.ASSISTANT, parts=parts)])
    leaf = a_summary_of(store, number, seqs=[1])

    (item,) = engine().expand(summary_id=leaf.summary_id, include_messages=True).items

    (stored,) = store.list_messages(conversation_id=number)
    assert item.parts == views(stored.parts, stored.content)


def test_a_part_added_between_two_pages_is_not_missed():
    store, conversation = a_store(), a_conversation()
    number = conversation.conversation_id
    store.append_messages(
        conversation_id=number,
        messages=[NewMessage(Role.USER, parts=(NewPart(PartType.FILE, file_url="data:" + "x y" * 5000),))],
    )
    leaf = a_summary_of(store, number, seqs=[1])
    reader = engine()
    options = {"summary_id": leaf.summary_id, "include_messages": True, "token_cap": 1000}
    found = [reader.expand(**options)]
    message = store.list_messages(conversation_id=number)[0]

    store.create_message_parts(message_id=message.message_id, parts=[NewPart(PartType.COMPACTION)])
    while found[-1].cursor is not None:
        found.append(reader.expand(**options, cursor=found[-1].cursor))

    (joined_message,) = joined(items_of(found))
    assert joined_message.parts == store.get_message(message_id=message.message_id).parts


@st.composite
def histories(draw):
    """Messages of any text, gathered into summaries of neighbours, those into wider ones, with stragglers between."""
    texts = draw(st.lists(st.text(max_size=200) | st.just("word " * 900), min_size=2, max_size=14))
    cuts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=14))
    stragglers = draw(st.sets(st.integers(1, len(texts)), max_size=2))
    return texts, cuts, stragglers


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories(), st.integers(20, 900), st.booleans())
def test_expanding_all_roots_gives_every_message_below_exactly_once_in_order(history, cap, include_all):
    texts, cuts, stragglers = history
    store, number = a_store(), a_conversation(*texts).conversation_id
    left = [seq for seq in range(1, len(texts) + 1) if seq not in stragglers]
    leaves = []
    for size in cuts:
        if left:
            leaves.append(a_summary_of(store, number, seqs=left[:size]))
            left = left[size:]
    roots = [leaves[-1]] if leaves else []
    if len(leaves) > 1:
        between = [seq for seq in stragglers if leaves[0].first_seq < seq < leaves[-2].last_seq]
        roots.insert(0, a_summary_of(store, number, summaries=leaves[:-1], seqs=between))
    expected = {
        message.seq: message
        for message in store.list_messages(conversation_id=number)
        if any(message.seq in covered(store, root) for root in roots)
    }

    found = [
        message
        for root in roots
        for message in joined(
            items_of(pages(root.summary_id, depth=-1 if include_all else 50, include_messages=True, token_cap=cap))
        )
    ]

    assert [message.seq for message in found] == sorted(expected)
    assert all(message.content == expected[message.seq].content for message in found)


def covered(store, summary) -> set[int]:
    below = {message.seq for message in store.get_summary_messages(summary_id=summary.summary_id)}
    for source in store.get_summary_children(summary_id=summary.summary_id):
        below |= covered(store, source)
    return below


def test_a_page_costs_five_queries_wherever_it_is(graph):
    *_, root = graph
    reader = engine()
    first = reader.expand(summary_id=root.summary_id, depth=-1, include_messages=True, token_cap=40)

    with counted_statements() as sent:
        reader.expand(summary_id=root.summary_id, depth=-1, include_messages=True, token_cap=40, cursor=first.cursor)

    assert len(sent) <= 5


def test_a_page_is_the_same_however_few_of_its_rows_are_read_at_once(graph, monkeypatch):
    *_, root = graph
    at_once = [pages(root.summary_id, depth=-1, include_messages=True, token_cap=cap) for cap in (7, 40, 4_000)]

    monkeypatch.setattr(expand, "READ_AT_ONCE", 2)

    assert at_once == [pages(root.summary_id, depth=-1, include_messages=True, token_cap=cap) for cap in (7, 40, 4_000)]


def test_a_page_that_its_parts_fill_does_not_read_all_that_its_texts_alone_would_leave_room_for(monkeypatch):
    number = a_conversation().conversation_id
    costly = NewPart(PartType.TEXT, text_content="hello", metadata={"note": "aside " * 400})
    a_store().append_messages(
        conversation_id=number, messages=[NewMessage(Role.USER, "hello", parts=(costly,)) for _ in range(40)]
    )
    leaf = a_summary_of(a_store(), number, seqs=range(1, 41))
    monkeypatch.setattr(expand, "READ_AT_ONCE", 5)

    with counted_statements() as sent:
        page = engine().expand(summary_id=leaf.summary_id, include_messages=True, token_cap=4_000)

    assert len(page.items) < 10 and page.truncated
    assert sum("FROM message_parts" in statement for statement in sent) == len(page.items) // 5 + 1


def test_a_page_costs_the_rows_that_it_gives_wherever_it_is_in_however_long_a_history():
    texts = [f"message {number} " * 30 for number in range(1, 601)]
    number = a_conversation(*texts).conversation_id
    leaves = [a_summary_of(a_store(), number, seqs=range(first, first + 20)) for first in range(1, 601, 20)]
    root = a_summary_of(a_store(), number, summaries=leaves)
    reader = engine()

    given, read, cursor = [], [], None
    for _ in range(4):
        before = rows_gone_through()
        page = reader.expand(summary_id=root.summary_id, depth=-1, include_messages=True, cursor=cursor)
        read.append(rows_gone_through() - before)
        given.append(len(page.items))
        cursor = page.cursor

    assert min(given) > 30
    # Each message has a link and a part, is looked up for the outline and read for the page; some do not fit. No
    # ANALYZE has told the planner how many there are, so a statement that is quick only with luck is slow here.
    assert max(read) < 10 * min(given), (read, given)


def test_summaries_alone_cost_no_look_at_the_messages_below_them():
    costs = []
    for length in (5, 40):
        number = a_conversation(*(f"message {n} " * 30 for n in range(30 * length))).conversation_id
        firsts = range(1, 30 * length, length)
        leaves = [a_summary_of(a_store(), number, seqs=range(first, first + length)) for first in firsts]
        root = a_summary_of(a_store(), number, summaries=leaves)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE messages, summaries, summary_messages, summary_parents")
        before = rows_gone_through()
        assert len(engine().expand(summary_id=root.summary_id, token_cap=20_000).items) == 30
        costs.append(rows_gone_through() - before)

    short, long = costs
    # Of the summaries, there are twice as many by then.
    assert long < 2 * short + 100


def test_the_sources_of_a_summary_cost_the_same_however_much_is_below_them():
    costs = []
    for width in (2, 30):
        number = a_conversation(*(f"message {n} " * 30 for n in range(4 * width))).conversation_id
        leaves = [a_summary_of(a_store(), number, seqs=[seq]) for seq in range(1, 4 * width + 1)]
        middles = [a_summary_of(a_store(), number, summaries=leaves[n * width : (n + 1) * width]) for n in range(4)]
        root = a_summary_of(a_store(), number, summaries=middles)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE messages, summaries, summary_messages, summary_parents")
            # Of so few rows the planner would read all.
            cursor.execute("SET LOCAL enable_seqscan = off")
        # As often as it takes for a plan that is for any values.
        for _ in range(6):
            before = rows_gone_through()
            assert len(engine().expand(summary_id=root.summary_id, token_cap=20_000).items) == 4
        costs.append(rows_gone_through() - before)

    few, many = costs
    assert many < few + 20


def test_what_opens_a_summary_is_planned_once_and_not_each_time(graph):
    _, first, *_, root = graph
    reader = engine()
    with connection.cursor() as cursor:
        # Those that another test has met, and planned for what it had.
        cursor.execute("DEALLOCATE ALL")

    for _ in range(12):
        reader.expand(summary_id=root.summary_id)
        reader.expand(summary_id=first.summary_id, include_messages=True)

    with connection.cursor() as cursor:
        cursor.execute("SELECT statement, generic_plans, custom_plans FROM pg_prepared_statements WHERE NOT from_sql")
        often = [(statement, custom) for statement, generic, custom in cursor.fetchall() if generic + custom >= 12]
    assert len(often) >= 4
    # For the first five times, PostgreSQL always makes a plan for the values at hand.
    assert [statement for statement, custom in often if custom > 5] == []


def test_a_leaf_of_very_many_messages_is_read_in_order_to_the_end():
    texts = [f"m{number}" for number in range(700)]
    number = a_conversation(*texts).conversation_id
    leaf = a_summary_of(a_store(), number, seqs=range(1, 701))

    found = items_of(pages(leaf.summary_id, include_messages=True))

    assert [item.content for item in found] == texts


def test_a_cap_above_the_policys_is_brought_down_to_it(graph):
    *_, root = graph

    result = engine(max_expand_tokens=64).expand(summary_id=root.summary_id, token_cap=10**9)

    assert result.token_cap == 64


def test_a_cursor_goes_on_under_another_cap(graph):
    *_, root = graph
    reader = engine()

    first = reader.expand(summary_id=root.summary_id, depth=-1, include_messages=True, token_cap=3)
    rest = reader.expand(summary_id=root.summary_id, depth=-1, include_messages=True, cursor=first.cursor)

    whole = items_of(pages(root.summary_id, depth=-1, include_messages=True))
    assert first.items[0].content + rest.items[0].content == whole[0].content
    assert [item.id for item in rest.items] == [item.id for item in whole]


@pytest.mark.parametrize("cursor", ["", "nonsense", "a.b:c", "\x00", "x" * 100_000])
def test_a_malformed_cursor_is_refused(graph, cursor):
    *_, root = graph

    with pytest.raises(Invalid) as refusal:
        engine().expand(summary_id=root.summary_id, cursor=cursor)

    assert refusal.value.code == "bad_cursor"


def test_a_cursor_of_another_summary_is_refused(graph):
    _, _, _, middle, _, root = graph
    cursor = engine().expand(summary_id=root.summary_id, token_cap=3).cursor

    with pytest.raises(Invalid) as refusal:
        engine().expand(summary_id=middle.summary_id, cursor=cursor)

    assert refusal.value.code == "bad_cursor"


def test_an_unknown_and_a_foreign_summary_are_both_not_found(graph):
    foreign = a_conversation("secret", workspace=a_workspace("another"))
    theirs = a_summary_of(a_store(a_workspace("another")), foreign.conversation_id, seqs=[1])

    for summary_id in (theirs.summary_id, "sum_ffffffffffffffff", "", "sum_\x00"):
        with pytest.raises(NotFound):
            engine().expand(summary_id=summary_id)

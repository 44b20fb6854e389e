"""Opening summaries again: a page at a time, in order, every byte."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.errors import Invalid
from conversations.types import NewMessage, NewPart, PartType, Role, SummaryRecord
from retrieval.expansion.expand import Position, Request
from retrieval.expansion.outline import Key
from retrieval.types import ExpandedItem, ExpandResult, ItemKind
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result
from tests.rejoining import joined
from tests.retrieval import lineages
from tests.retrieval.lineages import a_root_of, engine
from tests.statements import analyze, execute, rows_gone_through
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


def pages(summary_id: str, **options) -> list[ExpandResult]:
    return lineages.pages(engine().expand, summary_id=summary_id, **options)


def items_of(results: list[ExpandResult]) -> list[ExpandedItem]:
    return [item for result in results for item in result.items]


@pytest.fixture(scope="module")
def root(graph) -> SummaryRecord:
    return a_root_of(graph)


def test_one_level_is_opened_by_default(graph, root):
    result = engine().expand(summary_id=root.summary_id)

    assert [item.id for item in result.items] == [graph.middle.summary_id, graph.third.summary_id]
    assert {(item.of, item.level, item.kind) for item in result.items} == {(root.summary_id, 1, ItemKind.SUMMARY)}
    assert [item.content for item in result.items] == [graph.middle.content, graph.third.content]
    assert (result.truncated, result.cursor, result.messages_below) == (False, None, 8)


@pytest.mark.parametrize(
    ("opened", "depth", "expected"),
    [
        ("root", -1, ["middle", "first", 1, 2, 3, 4, "second", 5, 6, "third", 7, 8]),
        ("root", 2, ["middle", "first", 3, "second", "third", 7, 8]),
        ("middle", 1, ["first", 3, "second"]),
        ("first", 1, [1, 2, 4]),
    ],
)
def test_summaries_and_messages_lie_in_the_order_of_the_conversation(graph, root, opened, depth, expected):
    summaries = {**graph._asdict(), "root": root}
    names = {summaries[name].summary_id: name for name in ("first", "second", "middle", "third", "root")}

    found = items_of(pages(summaries[opened].summary_id, depth=depth, include_messages=True))

    assert [names.get(item.id, item.first_seq) for item in found] == expected
    assert all(names[item.of] == "middle" for item in found if item.first_seq == item.last_seq == 3)


def test_messages_among_the_sources_that_are_left_out_are_counted(graph):
    leaf, mixed = (engine().expand(summary_id=each.summary_id).note for each in (graph.first, graph.middle))

    assert leaf == "This summary was made from 3 messages; give include_messages to read them."
    assert mixed == "This summary was also made from 1 message; give include_messages to read them."


def test_a_leaf_gives_its_messages_when_they_are_asked_for(graph):
    without = engine().expand(summary_id=graph.first.summary_id)
    opened = engine().expand(summary_id=graph.first.summary_id, include_messages=True)

    assert without.items == ()
    assert "3 messages" in (without.note or "")
    assert [item.first_seq for item in opened.items] == [1, 2, 4]
    assert opened.items[0].content == "message 1 " * 5


@pytest.mark.parametrize("cap", [1, 40])
def test_no_page_costs_more_than_its_cap_and_nothing_is_lost_or_doubled(root, cap):
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


def test_what_fits_no_page_begins_on_one_that_is_half_empty_and_what_fits_one_comes_whole():
    texts = ["Look.", "first " * 900, "second " * 300, "third " * 300]
    store, conversation = a_store(), a_conversation(*texts)
    leaf = a_summary_of(store, conversation.conversation_id, seqs=[1, 2, 3, 4])

    found = pages(leaf.summary_id, include_messages=True, token_cap=500)

    on_each = [[(item.first_seq, item.complete) for item in page.items] for page in found]
    assert on_each[0] == [(1, True), (2, False)]
    assert all(page[-1] in ((3, True), (4, True)) for page in on_each[-2:])
    assert all(page.tokens <= 500 for page in found)
    assert [message.content for message in joined(items_of(found))] == texts


def test_tool_calls_and_results_come_back_with_their_parts():
    store, conversation = a_store(), a_conversation("please read it")
    store.append_messages(
        conversation_id=conversation.conversation_id,
        messages=[a_tool_call("call_1", path="src/a.py", z=1, a=2), a_tool_result("call_1", "import os\n" * 50)],
    )
    leaf = a_summary_of(store, conversation.conversation_id, seqs=[1, 2, 3])

    found = engine().expand(summary_id=leaf.summary_id, include_messages=True)

    stored = store.list_messages(conversation_id=conversation.conversation_id)
    assert [(m.content, m.parts) for m in joined(found.items)] == [(m.content, m.parts) for m in stored]
    # The tool's output is not said twice.
    assert found.tokens < 1.6 * sum(message.token_count for message in stored)


def test_a_part_added_between_two_pages_is_not_missed():
    store, conversation = a_store(), a_conversation()
    number = conversation.conversation_id
    store.append_messages(
        conversation_id=number,
        messages=[NewMessage(Role.USER, parts=(NewPart(PartType.FILE, file_url="data:" + "x y" * 5000),))],
    )
    leaf = a_summary_of(store, number, seqs=[1])
    options = {"include_messages": True, "token_cap": 1000}
    first = engine().expand(summary_id=leaf.summary_id, **options)
    message = store.list_messages(conversation_id=number)[0]

    store.create_message_parts(message_id=message.message_id, parts=[NewPart(PartType.COMPACTION)])
    rest = pages(leaf.summary_id, **options, cursor=first.cursor)

    (joined_message,) = joined(items_of([first, *rest]))
    assert joined_message.parts == store.get_message(message_id=message.message_id).parts


@st.composite
def histories(draw):
    """Messages of any text, gathered into summaries of neighbours, those into wider ones, with stragglers between."""
    texts = draw(st.lists(st.text(max_size=200) | st.just("word " * 300), min_size=2, max_size=14))
    cuts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=14))
    stragglers = draw(st.sets(st.integers(1, len(texts)), max_size=2))
    return texts, cuts, stragglers


@pytest.mark.thorough
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


def test_a_page_costs_the_rows_that_it_gives_wherever_it_is_in_however_long_a_history():
    # The plans of large tables, though the statistics are from before the history.
    execute("SET LOCAL enable_seqscan = off")
    analyze("messages, summaries, summary_messages, summary_parents")
    texts = [f"message {number} " * 30 for number in range(1, 301)]
    number = a_conversation(*texts).conversation_id
    leaves = [a_summary_of(a_store(), number, seqs=range(first, first + 20)) for first in range(1, 301, 20)]
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
    # Each message has a link and a part, is looked up for the outline and read for the page; some do not fit.
    assert max(read) < 10 * min(given), (read, given)


def test_summaries_alone_cost_no_look_at_the_messages_below_them():
    costs = []
    for length in (5, 30):
        number = a_conversation(*(f"message {n} " for n in range(20 * length))).conversation_id
        firsts = range(1, 20 * length, length)
        leaves = [a_summary_of(a_store(), number, seqs=range(first, first + length)) for first in firsts]
        root = a_summary_of(a_store(), number, summaries=leaves)
        analyze("messages, summaries, summary_messages, summary_parents")
        before = rows_gone_through()
        assert len(engine().expand(summary_id=root.summary_id, token_cap=20_000).items) == 20
        costs.append(rows_gone_through() - before)

    short, long = costs
    # Of the summaries, there are twice as many by then.
    assert long < 2 * short + 100


def test_a_leaf_of_very_many_messages_is_read_in_order_to_the_end():
    texts = [f"m{number}" for number in range(700)]
    number = a_conversation(*texts).conversation_id
    leaf = a_summary_of(a_store(), number, seqs=range(1, 701))

    found = items_of(pages(leaf.summary_id, include_messages=True))

    assert [item.content for item in found] == texts


def test_a_cap_above_the_policys_is_brought_down_to_it(root):
    result = engine(max_expand_tokens=64).expand(summary_id=root.summary_id, token_cap=10**9)

    assert result.token_cap == 64


def test_a_cursor_goes_on_under_another_cap(root):
    reader = engine()

    first = reader.expand(summary_id=root.summary_id, depth=-1, include_messages=True, token_cap=3)
    rest = reader.expand(summary_id=root.summary_id, depth=-1, include_messages=True, cursor=first.cursor)

    whole = items_of(pages(root.summary_id, depth=-1, include_messages=True))
    assert first.items[0].content + rest.items[0].content == whole[0].content
    assert [item.id for item in rest.items] == [item.id for item in whole]


def test_a_cursor_that_this_expansion_did_not_give_is_refused(graph, root):
    reader = engine()
    of_another_summary = reader.expand(summary_id=graph.middle.summary_id, token_cap=3).cursor
    of_another_depth = reader.expand(summary_id=root.summary_id, depth=2, token_cap=3).cursor

    for cursor in ("", "nonsense", "a.b:c", "\x00", "x" * 100_000, of_another_summary, of_another_depth):
        with pytest.raises(Invalid) as refusal:
            reader.expand(summary_id=root.summary_id, cursor=cursor)
        assert refusal.value.code == "bad_cursor"


@given(st.integers(0, 10_000), st.characters(codec="ascii"))
def test_a_changed_cursor_is_refused(place, character):
    request = Request("sum_0123456789abcdef", 2, True)
    cursor = request.cursor(Position(Key(17, -1, "sum_a"), 4000, 12))
    place %= len(cursor)
    changed = cursor[:place] + character + cursor[place + 1 :]

    if changed != cursor:
        with pytest.raises(Invalid) as refusal:
            request.position(changed)
        assert refusal.value.code == "bad_cursor"

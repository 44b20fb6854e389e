"""What stands for a range of messages, and opening it."""

from __future__ import annotations

import re

import pytest

from conversations.errors import Invalid
from integrity.repairs.quarantines import Quarantines
from integrity.retention.erasure import Erasures
from retrieval.types import MessageSpan
from tests.factories import a_conversation, a_store, say
from tests.integrity.erasing import erased
from tests.rejoining import joined
from tests.retrieval import lineages
from tests.retrieval.lineages import Graph, a_graph, engine, range_pages, told
from tests.summaries import a_summary_of


@pytest.fixture(scope="module")
def graph(module_rows) -> Graph:
    return a_graph(12)


# -- describe


def test_a_range_is_covered_by_summaries_and_raw_messages_that_say_how_far_they_reach(graph):
    number, first, second, middle, third = graph

    found = engine().describe_range(conversation_id=number, from_seq=2, to_seq=10)

    assert [(node.summary.summary_id, node.messages_in_range) for node in found.nodes] == [
        (middle.summary_id, 5),
        (third.summary_id, 2),
    ]
    assert [(node.seqs_before, node.seqs_after) for node in found.nodes] == [(1, 0), (0, 0)]
    assert [node.content for node in found.nodes] == [middle.content, third.content]
    assert found.raw_messages == (MessageSpan(9, 10),)
    assert (found.first_seq, found.last_seq, found.message_count) == (1, 10, 9)
    assert sum(node.messages_in_range for node in found.nodes) + 2 == found.message_count
    assert {outline.summary_id for outline in found.manifest} == {first.summary_id, second.summary_id}
    assert all(outline.opening_tokens > 0 for outline in found.manifest)
    assert found.context_tokens < found.message_tokens


def test_a_summary_that_only_spans_the_range_does_not_cover_it(graph):
    number = a_conversation(*(f"message {seq} " * 5 for seq in range(1, 6))).conversation_id
    around = a_summary_of(a_store(), number, seqs=[1, 2, 4])

    in_the_gap = engine().describe_range(conversation_id=number, from_seq=3, to_seq=3)
    beside_it = engine().describe_range(conversation_id=number, from_seq=3, to_seq=4)

    assert in_the_gap.nodes == ()
    assert in_the_gap.raw_messages == (MessageSpan(3, 3),)
    assert [(node.summary.summary_id, node.messages_in_range) for node in beside_it.nodes] == [(around.summary_id, 1)]


def test_texts_are_given_as_far_as_an_expansion_may_go(graph):
    number, _, _, middle, third = graph
    found = engine(max_expand_tokens=64).describe_range(conversation_id=number, from_seq=1, to_seq=12)
    long = a_conversation(*(f"message {seq}" for seq in range(1, 5))).conversation_id
    a_summary_of(a_store(), long, seqs=[1, 2], content="word " * 100)

    too_long = engine(max_expand_tokens=64).describe_range(conversation_id=long, from_seq=1, to_seq=4)

    assert [node.content for node in found.nodes] == [middle.content, third.content]
    assert [node.content for node in too_long.nodes] == [None]


def test_beyond_its_end_a_conversation_has_nothing(graph):
    number, *_ = graph

    over = engine().describe_range(conversation_id=number, from_seq=12, to_seq=99)
    beyond = engine().describe_range(conversation_id=number, from_seq=50, to_seq=99)

    assert (over.message_count, over.raw_messages) == (1, (MessageSpan(12, 12),))
    assert (beyond.message_count, beyond.nodes, beyond.raw_messages) == (0, (), ())
    assert "12 messages" in (beyond.note or "")


def test_a_range_that_runs_backwards_is_refused(graph):
    for ask in (engine().describe_range, engine().expand_range):
        with pytest.raises(Invalid):
            ask(conversation_id=graph[0], from_seq=3, to_seq=2)


# -- expand


def test_the_first_layer_of_a_range_is_what_the_context_has_for_it(graph):
    number, _, _, middle, third = graph

    with_messages = engine().expand_range(conversation_id=number, from_seq=2, to_seq=10, include_messages=True)

    assert told([with_messages]) == [middle.summary_id, third.summary_id, 9, 10]
    assert {(item.of, item.level) for item in with_messages.items} == {(f"conv_{number}", 1)}
    assert told(range_pages(number, 2, 10)) == [middle.summary_id, third.summary_id]


def test_messages_that_a_page_of_a_range_leaves_out_are_counted(graph):
    number, *_ = graph
    some, all_raw = range_pages(number, 2, 10), range_pages(number, 9, 12)

    assert "2 messages" in some[-1].note and "include_messages" in some[-1].note
    assert all_raw[-1].items == () and "4 messages" in all_raw[-1].note
    assert range_pages(number, 2, 10, include_messages=True)[-1].note is None


def test_a_range_is_opened_as_deep_as_it_is_asked_for(graph):
    number, first, second, middle, third = graph

    two = told(range_pages(number, 2, 10, depth=2, include_messages=True))
    all_levels = told(range_pages(number, 2, 10, depth=-1, include_messages=True))

    # What begins before the range comes where the range begins.
    assert two == [middle.summary_id, first.summary_id, 3, second.summary_id, third.summary_id, 7, 8, 9, 10]
    assert all_levels == [
        middle.summary_id, first.summary_id, 2, 3, 4, second.summary_id, 5, 6, third.summary_id, 7, 8, 9, 10,
    ]  # fmt: skip


def test_the_messages_alone_are_all_of_the_range_and_nothing_else(graph):
    number, *_ = graph

    found = range_pages(number, 3, 11, only_messages=True, token_cap=30)

    assert len(found) > 1
    whole = list(joined(item for page in found for item in page.items))
    stored = a_store().list_messages(conversation_id=number, after_seq=2, limit=9)
    assert [(message.seq, message.content) for message in whole] == [(each.seq, each.content) for each in stored]


@pytest.mark.parametrize("cap", [7, 40, 4000])
def test_no_page_of_a_range_costs_more_than_its_cap_and_nothing_is_lost_or_doubled(graph, cap):
    number, *_ = graph
    everything = range_pages(number, 2, 11, depth=-1, include_messages=True)

    found = range_pages(number, 2, 11, depth=-1, include_messages=True, token_cap=cap)

    assert all(page.tokens <= cap and page.items for page in found)
    texts: dict[str, str] = {}
    for page in found:
        for item in page.items:
            texts[item.id] = texts.get(item.id, "") + item.content
    assert texts == {item.id: item.content for page in everything for item in page.items}
    assert list(texts) == [item.id for page in everything for item in page.items]


@pytest.mark.parametrize("longest", [(2,), (2, 3), (3, 5)])
@pytest.mark.parametrize("taken", ["erased", "quarantined"])
def test_what_comes_behind_a_long_message_that_lost_its_text_is_given_too(db, taken, longest):
    number = a_conversation(*("harbour " * (900 if seq in longest else 4) for seq in range(1, 8))).conversation_id
    for seq in longest:
        if taken == "quarantined":
            Quarantines.from_settings().quarantine(id=lineages.message_id(number, seq), reason="It was altered.")
        else:
            erased(Erasures.from_settings(), number, from_seq=seq, to_seq=seq)

    found = range_pages(number, 1, 7, only_messages=True, token_cap=800)

    assert told(found) == [1, 2, 3, 4, 5, 6, 7]
    assert [item.first_seq for page in found for item in page.items if not item.content] == list(longest)
    assert all(page.tokens <= 800 for page in found)


def test_messages_appended_within_an_open_range_are_on_later_pages(graph):
    number, *_ = graph
    first = engine().expand_range(conversation_id=number, from_seq=9, to_seq=99, only_messages=True, token_cap=20)
    say(number, "one more")

    found = [first, *range_pages(number, 9, 99, only_messages=True, cursor=first.cursor)]

    assert [message.seq for message in joined(item for page in found for item in page.items)] == [9, 10, 11, 12, 13]


def test_a_cursor_is_of_its_range_and_of_what_that_held(graph):
    number, _, _, middle, third = graph
    asked = {"conversation_id": number, "depth": -1, "include_messages": True, "token_cap": 30}
    page = engine().expand_range(**asked, from_seq=2, to_seq=11)
    assert page.cursor is not None
    forged = page.cursor[:-1] + ("A" if page.cursor[-1] != "A" else "Q")

    assert re.fullmatch(r"[\w-]{1,40}", page.cursor)
    for cursor, to_seq in (
        (page.cursor, 10),
        (forged, 11),
        ("nonsense", 11),
        ("~", 11),
        ("9" * 17 + "~", 11),
        ("\uff11~", 11),
        (page.cursor[:-2], 11),
    ):
        with pytest.raises(Invalid) as refused:
            engine().expand_range(**asked, from_seq=2, to_seq=to_seq, cursor=cursor)

        assert refused.value.code == "bad_cursor"


# -- both ends


def test_first_and_last_are_kept_and_the_gap_between_them_is_told(graph):
    number, *_ = graph

    page = engine().expand_range(
        conversation_id=number, from_seq=1, to_seq=12, only_messages=True, token_cap=60, keep_ends=True
    )

    seqs = told([page])
    assert (seqs[0], seqs[-1]) == (1, 12)
    assert page.tokens <= 60
    assert page.gap == MessageSpan(seqs[-2] + 1, 11)
    following = engine().expand_range(
        conversation_id=number, from_seq=1, to_seq=12, only_messages=True, cursor=page.cursor
    )
    assert told([following]) == list(range(seqs[-2] + 1, 13))


def test_what_fits_has_no_gap(graph):
    number, *_ = graph

    page = engine().expand_range(conversation_id=number, from_seq=1, to_seq=12, only_messages=True, keep_ends=True)

    assert (page.gap, page.cursor, len(page.items)) == (None, None, 12)


def test_ends_larger_than_the_page_are_both_begun(db):
    number = a_conversation("first " * 500, "between", "last " * 500).conversation_id

    page = engine().expand_range(
        conversation_id=number, from_seq=1, to_seq=3, only_messages=True, token_cap=100, keep_ends=True
    )

    assert [(item.first_seq, item.complete) for item in page.items] == [(1, False), (3, False)]
    assert all(item.content.startswith(word) for item, word in zip(page.items, ("first", "last"), strict=True))
    assert page.tokens <= 100
    assert page.gap == MessageSpan(1, 2)


def test_a_summary_is_opened_from_both_ends_too(graph):
    number, first, *_ = graph
    long = a_conversation(*(f"message {seq} " * 20 for seq in range(1, 21))).conversation_id
    leaf = a_summary_of(a_store(), long, seqs=range(1, 21))

    page = engine().expand(summary_id=leaf.summary_id, include_messages=True, token_cap=200, keep_ends=True)

    assert (page.items[0].first_seq, page.items[-1].first_seq) == (1, 20)
    assert page.gap == MessageSpan(page.items[-2].first_seq + 1, 19)
    assert page.tokens <= 200

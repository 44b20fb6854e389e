from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from compaction.engine import CompactionEngine
from conversations.errors import Invalid, NotFound
from conversations.models import Summary
from conversations.scope import Scope
from conversations.types import ConversationRecord, MessageRecord, NewMessage, NewPart, PartType, Role
from retrieval.engine import RetrievalEngine
from retrieval.slices import joined
from retrieval.types import ExpandedItem, ItemKind
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace

pytestmark = pytest.mark.django_db


def a_compacted_talk(count: int = 60, *more: NewMessage, **overrides: Any) -> ConversationRecord:
    """A conversation with summaries of several depths; further messages are said in its middle."""
    settings = {"leaf_chunk_tokens": 1500, "condense_fan_in": 2, "fresh_tail_count": 4, **overrides}
    conversation = a_conversation(
        *(f"Item {n}: " + f"port {5000 + n}. " * 20 for n in range(count)), overrides=settings
    )
    store = a_store()
    late = [NewMessage(Role.ASSISTANT, f"Later {n}: " + "so it goes. " * 20) for n in range(20)]
    store.append_messages(conversation_id=conversation.conversation_id, messages=[*more, *late])
    CompactionEngine.from_settings().compact(conversation_id=conversation.conversation_id)
    return conversation


def roots_of(conversation: ConversationRecord) -> list[str]:
    """The active summaries, oldest first."""
    rows = Summary.objects.filter(conversation_id=conversation.conversation_id).active().oldest_first()
    return list(rows.values_list("summary_id", flat=True))


def deepest(conversation: ConversationRecord) -> str:
    return Summary.objects.filter(conversation_id=conversation.conversation_id).order_by("-depth")[0].summary_id


def pages(summary_id: str, **options: Any) -> Iterator[list[ExpandedItem]]:
    """Every page of an expansion, by its cursors."""
    cursor = None
    while True:
        result = RetrievalEngine.from_settings().expand(summary_id=summary_id, cursor=cursor, **options)
        yield list(result.items)
        assert result.truncated == (result.cursor is not None)
        cursor = result.cursor
        if cursor is None:
            return


def everything_below(conversation: ConversationRecord, token_cap: int) -> list[ExpandedItem]:
    items = [
        item
        for root in roots_of(conversation)
        for page in pages(root, depth=-1, include_messages=True, token_cap=token_cap)
        for item in page
    ]
    return [item for item in joined(items) if item.kind is ItemKind.MESSAGE]


def said(message: MessageRecord) -> tuple[Any, ...]:
    parts = tuple(part for part in message.parts if not part.is_synthetic)
    return message.id, message.seq, message.content, parts


@pytest.mark.parametrize("token_cap", [9, 37, 4000])
def test_every_byte_of_every_message_comes_back_in_order_whatever_the_size_of_a_page(token_cap):
    hostile = NewMessage(Role.USER, "nul \x00 lone \ud800 中文 🎉 " * 30)
    reasoning = NewMessage(
        Role.ASSISTANT,
        "",
        parts=(NewPart(PartType.REASONING, text_content="because " * 300, metadata={"b": 1, "a": 2.50}),),
    )
    conversation = a_compacted_talk(
        10, hostile, reasoning, a_tool_call("c", path="x.py"), a_tool_result("c", "line\n" * 400), max_depth=1
    )
    covered = {item.id for item in everything_below(conversation, 4000)}

    items = everything_below(conversation, token_cap)

    stored = a_store().list_messages(conversation_id=conversation.conversation_id, limit=1000)
    expected = [said(message) for message in stored if message.id in covered]
    assert len(expected) > 10
    assert [(item.id, item.first_seq, item.content, item.parts) for item in items] == expected


def test_one_layer_is_opened_by_default():
    root = deepest(a_compacted_talk())

    (page,) = pages(root)

    children = a_store().get_summary_children(summary_id=root)
    assert [item.id for item in page] == [child.summary_id for child in children]
    assert {item.level for item in page} == {1}
    assert {item.of for item in page} == {root}


def test_a_bounded_depth_opens_no_more_than_that():
    root = deepest(a_compacted_talk())

    items = [item for page in pages(root, depth=2) for item in page]

    assert {item.level for item in items} == {1, 2}


def test_a_page_keeps_to_its_cap():
    conversation = a_compacted_talk()

    for page in pages(deepest(conversation), depth=-1, include_messages=True, token_cap=300):
        assert sum(item.tokens for item in page) <= 300 or len(page) == 1


def test_what_was_not_opened_is_counted():
    conversation = a_compacted_talk(max_depth=0)
    root = roots_of(conversation)[0]

    result = RetrievalEngine.from_settings().expand(summary_id=root)

    assert result.items == ()
    assert result.unopened_messages == Summary.objects.get(pk=root).descendant_count


def test_a_page_costs_the_same_number_of_queries_wherever_it_begins():
    conversation = a_compacted_talk(200, max_depth=0, leaf_chunk_tokens=100_000)
    engine = RetrievalEngine.from_settings()
    ask = {"summary_id": roots_of(conversation)[0], "include_messages": True, "token_cap": 1000}
    first = engine.expand(**ask)

    with CaptureQueriesContext(connection) as at_the_start:
        engine.expand(**ask)
    with CaptureQueriesContext(connection) as farther_on:
        engine.expand(**ask, cursor=first.cursor)

    assert len(first.items) > 5
    assert len(farther_on) <= len(at_the_start) <= 6


def test_a_cursor_serves_no_other_question():
    conversation = a_compacted_talk()
    engine = RetrievalEngine.from_settings()
    root = deepest(conversation)
    cursor = engine.expand(summary_id=root, depth=-1, include_messages=True, token_cap=50).cursor
    assert cursor is not None

    for other in (
        {"summary_id": root, "depth": 1, "include_messages": True},
        {"summary_id": root, "depth": -1, "include_messages": False},
        {
            "summary_id": a_store().get_summary_children(summary_id=root)[0].summary_id,
            "depth": -1,
            "include_messages": True,
        },
    ):
        with pytest.raises(Invalid) as refused:
            engine.expand(**other, cursor=cursor)
        assert refused.value.code == "bad_cursor"


@pytest.mark.parametrize("cursor", ["", "x", "eyJ:abc:def", "\x00", "é" * 50, "a" * 10_000])
def test_a_malformed_cursor_is_refused(cursor):
    root = deepest(a_compacted_talk(30))

    with pytest.raises(Invalid) as refused:
        RetrievalEngine.from_settings().expand(summary_id=root, cursor=cursor)

    assert refused.value.code == "bad_cursor"


@pytest.mark.parametrize("wrong", [{"token_cap": 0}, {"token_cap": -5}, {"depth": 0}, {"depth": -2}])
def test_figures_that_cannot_be_meant_are_refused(wrong):
    root = deepest(a_compacted_talk(30))

    with pytest.raises(Invalid):
        RetrievalEngine.from_settings().expand(summary_id=root, **wrong)


def test_another_workspaces_summary_is_not_there():
    root = deepest(a_compacted_talk(30))
    theirs = RetrievalEngine.from_settings(Scope(a_workspace("theirs").pk))

    with pytest.raises(NotFound):
        theirs.expand(summary_id=root)

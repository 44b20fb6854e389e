from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from conversations.errors import Conflict, Invalid, NotFound
from conversations.models import ContextItem, Conversation, Summary
from conversations.types import NewMessage, NewPart, PartType, Role
from tests.conversations.appending import assert_counters_are_recounts, message_ids, recounted, shown
from tests.factories import a_conversation, a_store, a_workspace
from tests.statements import analyze, rows_gone_through
from tests.summaries import a_new_summary, a_summary_of

pytestmark = pytest.mark.django_db


def contents_of(messages: list[Any]) -> list[str]:
    return [message.content for message in messages]


def test_a_conversation_is_opened_once_and_found_by_its_session_id():
    store = a_store()
    opened = store.open_conversation(
        session_id="s-1", title="First", metadata={"b": 1}, overrides={"fresh_tail_count": 4}
    )

    again = store.open_conversation(session_id="s-1", title="Second", metadata={"c": 2})

    found = store.find_conversation(session_id="s-1")
    assert found == store.get_conversation(conversation_id=opened.conversation_id)
    assert {**vars(again), **vars(found)} == vars(again)
    assert {**vars(opened), **vars(found)} == vars(opened)
    assert (opened.created, opened.left_as_it_was) == (True, ())
    assert (again.created, again.left_as_it_was) == (False, ("title", "metadata"))
    assert (opened.title, opened.metadata, opened.overrides) == ("First", {"b": 1}, {"fresh_tail_count": 4})
    assert opened.counters.message_count == opened.counters.active_tokens == 0


def test_a_name_may_have_500_characters():
    assert a_store().open_conversation(session_id="ä" * 500).session_id == "ä" * 500


@pytest.mark.parametrize(
    "values",
    [
        {"session_id": ""},
        {"session_id": "a\x00b"},
        {"session_id": "s" * 501},
        {"session_id": "s", "title": "\ud800"},
        {"session_id": "s", "metadata": {"a": ["\x00"]}},
        {"session_id": "s", "overrides": {"fresh_tail_count": 0}},
        {"session_id": "s", "overrides": {"colour": "red"}},
    ],
    ids=["empty", "nul", "long", "title", "metadata", "out of range", "unknown"],
)
def test_a_conversation_that_cannot_be_right_is_not_opened(values):
    with pytest.raises(Invalid):
        a_store().open_conversation(**values)

    assert not Conversation.objects.exists()


@pytest.mark.parametrize("session_id", ["unknown", "", "\x00", "\ud800", "x" * 10_000], ids=range(5))
def test_a_session_id_that_nobody_used_is_not_found(session_id):
    a_conversation(session_id="known")

    with pytest.raises(NotFound):
        a_store().find_conversation(session_id=session_id)


def test_a_conversations_settings_are_replaced_as_a_whole():
    conversation = a_conversation(overrides={"fresh_tail_count": 4})

    configured = a_store().configure_conversation(
        conversation_id=conversation.conversation_id, overrides={"context_threshold": "0.5"}
    )

    assert configured.overrides == {"context_threshold": 0.5}
    assert a_store().get_conversation(conversation_id=conversation.conversation_id) == configured
    assert configured.updated_at > conversation.updated_at


def test_a_page_behind_the_last_message_is_empty_and_one_of_somebody_elses_is_refused():
    ours = a_conversation("a", "b").conversation_id
    theirs = a_conversation("a", workspace=a_workspace("theirs")).conversation_id
    store = a_store()

    assert store.list_messages(conversation_id=ours, after_seq=2) == []
    for nobodys in (theirs, 987654321, 2**70):
        with pytest.raises(NotFound):
            store.list_messages(conversation_id=nobodys)


def test_parts_may_be_added_and_change_neither_content_nor_cost_nor_chain():
    conversation_id = a_conversation("hello").conversation_id
    store = a_store()
    before = store.create_message(conversation_id=conversation_id, message=NewMessage(Role.USER, "and this"))
    assert (before.seq, before.content) == (2, "and this")
    odd = NewPart(PartType.COMPACTION, text_content="\x00", metadata={"b": 1.0, "a": "\ud800"}, is_ignored=True)

    store.create_message_parts(message_id=before.message_id, parts=[odd, NewPart(PartType.AGENT)])
    store.create_message_parts(message_id=before.message_id, parts=[NewPart(PartType.PATCH, patch_files=())])

    after = store.get_message(message_id=before.message_id)
    assert replace(after, parts=()) == before
    assert [part.ordinal for part in after.parts] == [0, 1, 2]
    assert (after.parts[0].text_content, repr(after.parts[0].metadata)) == ("\x00", "{'b': 1.0, 'a': '\\ud800'}")
    assert after.parts[2].patch_files == ()


def test_a_part_that_cannot_be_kept_is_refused_and_its_fellows_with_it():
    conversation_id = a_conversation("hello").conversation_id
    (message_id,) = message_ids(conversation_id)

    with pytest.raises(Invalid, match="32-bit"), transaction.atomic():
        a_store().create_message_parts(
            message_id=message_id, parts=[NewPart(PartType.TEXT), NewPart(PartType.TEXT, step_tokens_in=2**40)]
        )

    assert a_store().get_message(message_id=message_id).parts == ()


def test_a_summary_stands_where_its_first_source_stood_and_the_counters_follow():
    conversation_id = a_conversation(*"abcde").conversation_id
    ids = message_ids(conversation_id)

    leaf = a_summary_of(a_store(), conversation_id, seqs=range(2, 5), item_tokens=7)

    assert shown(conversation_id) == [(1, ids[0]), (2, leaf.summary_id), (5, ids[4])]
    assert_counters_are_recounts(conversation_id)
    counters = a_store().get_conversation(conversation_id=conversation_id).counters
    assert (counters.active_messages, counters.message_count) == (2, 5)
    assert counters.active_tokens == 5 + 7 + 5
    items = a_store().get_context_items(conversation_id=conversation_id)
    assert [item.item_type for item in items] == ["message", "summary", "message"]


def test_to_show_a_summary_no_item_is_read_that_it_does_not_replace():
    a_conversation(*("said elsewhere " * 5 for _ in range(500)))
    conversation_id = a_conversation(*(f"message {n}" for n in range(200))).conversation_id
    analyze("context_items, messages")
    before = rows_gone_through("context_items")

    a_summary_of(a_store(), conversation_id, seqs=range(1, 131))

    assert rows_gone_through("context_items") - before == 130


def test_a_condensed_summary_stands_where_the_first_of_its_summaries_stood():
    conversation_id = a_conversation(*"abcde").conversation_id
    leaves = [a_summary_of(a_store(), conversation_id, seqs=[seq, seq + 1]) for seq in (1, 3)]

    condensed = a_summary_of(a_store(), conversation_id, summaries=leaves, item_tokens=3)

    assert shown(conversation_id) == [(1, condensed.summary_id), (5, message_ids(conversation_id)[4])]
    assert_counters_are_recounts(conversation_id)
    store = a_store()
    assert store.get_summary_children(summary_id=condensed.summary_id) == leaves
    assert store.get_summary_children(summary_id=leaves[0].summary_id) == []
    assert contents_of(store.get_summary_messages(summary_id=leaves[1].summary_id)) == ["c", "d"]
    assert store.get_summary_messages(summary_id=condensed.summary_id) == []
    # The specification's names, whose direction surprises: `parent_summary_id` is the older source.
    links = Summary.objects.values_list("summary_id", "source_links__source_id").exclude(source_links=None)
    assert list(links.order_by("source_links__ordinal")) == [(condensed.summary_id, leaf.summary_id) for leaf in leaves]


def test_sources_keep_the_order_in_which_they_are_linked():
    conversation_id = a_conversation(*"abc").conversation_id
    store, ids = a_store(), message_ids(conversation_id)

    summary = store.insert_summary(summary=a_new_summary(conversation_id))
    store.link_summary_to_messages(summary_id=summary.summary_id, message_ids=[ids[2], ids[0]])

    assert contents_of(store.get_summary_messages(summary_id=summary.summary_id)) == ["c", "a"]


@pytest.mark.parametrize("source_count", [1, 3, 0])
def test_a_context_that_changed_meanwhile_is_left_alone(source_count):
    conversation_id = a_conversation(*"abcd").conversation_id
    store, ids = a_store(), message_ids(conversation_id)
    before = shown(conversation_id)
    summary = store.insert_summary(summary=a_new_summary(conversation_id))
    store.link_summary_to_messages(summary_id=summary.summary_id, message_ids=ids[:2])

    with pytest.raises(Conflict, match="changed"), transaction.atomic():
        store.replace_context_range_with_summary(
            conversation_id=conversation_id, summary_id=summary.summary_id, source_count=source_count, item_tokens=1
        )

    assert shown(conversation_id) == before
    assert_counters_are_recounts(conversation_id)


def test_a_message_missing_from_the_context_is_shown_again_at_its_place():
    conversation_id = a_conversation(*"abc").conversation_id
    store, ids = a_store(), message_ids(conversation_id)
    before = shown(conversation_id)
    taken = ContextItem.objects.get(message_id=ids[1])
    ContextItem.objects.filter(message_id=ids[1]).delete()
    Conversation.objects.filter(pk=conversation_id).update(
        active_messages=2, active_tokens=recounted(conversation_id)[1]
    )

    for _ in range(2):
        store.append_context_message(conversation_id=conversation_id, message_id=ids[1])

    assert shown(conversation_id) == before
    assert ContextItem.objects.get(message_id=ids[1]).token_count == taken.token_count
    assert_counters_are_recounts(conversation_id)


def test_what_a_summary_stands_for_and_what_others_hold_is_not_shown():
    conversation_id, other = a_conversation(*"abc").conversation_id, a_conversation("b").conversation_id
    a_summary_of(a_store(), conversation_id, seqs=range(1, 3))

    with pytest.raises(Conflict, match="summary"):
        a_store().append_context_message(conversation_id=conversation_id, message_id=message_ids(conversation_id)[0])
    with pytest.raises(NotFound):
        a_store().append_context_message(conversation_id=conversation_id, message_id=message_ids(other)[0])


def test_metadata_of_a_conversation_have_no_more_levels_than_can_be_read_back():
    nested: list[object] = []
    for _ in range(198):
        nested = [nested]

    kept = a_conversation(metadata={"a": nested}).metadata

    assert kept == {"a": nested}
    with pytest.raises(Invalid, match="200 levels"):
        a_conversation(metadata={"a": [[nested]]})

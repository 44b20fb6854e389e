"""Conversations are listed by what they are, renamed, and appended to where the caller thinks they end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from conversations.errors import Invalid, StaleHead
from conversations.models import AuditEntry, Conversation, Message
from conversations.types import ConversationRecord, NewMessage, NewPart, PartType, Role
from integrity.repairs.quarantines import Quarantines
from retrieval.engine import RetrievalEngine
from tests.factories import a_conversation, a_store, a_workspace

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def fleet(module_rows: None) -> list[ConversationRecord]:
    """Four conversations of two projects, and one of another workspace."""
    return [
        a_conversation("one", session_id="fleet/1", project="boats", metadata={"team": "red", "tags": ["a", "b"]}),
        a_conversation("two", session_id="fleet/2", project="boats", metadata={"team": "blue"}),
        a_conversation("three", session_id="fleets", project="docks", metadata={"team": "red"}),
        a_conversation("four", session_id="other%", metadata={"nested": {"deep": 1.5}}),
        a_conversation("five", session_id="fleet/9", workspace=a_workspace("elsewhere"), project="boats"),
    ]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["fleet/1", "fleet/2", "fleets", "other%"]),
        ({"newest_first": True}, ["other%", "fleets", "fleet/2", "fleet/1"]),
        ({"project": "boats"}, ["fleet/1", "fleet/2"]),
        ({"project": "unknown"}, []),
        ({"session_prefix": "fleet/"}, ["fleet/1", "fleet/2"]),
        ({"session_prefix": "other%"}, ["other%"]),
        ({"session_prefix": "%"}, []),
        ({"has_metadata": {"team": "red"}}, ["fleet/1", "fleets"]),
        ({"has_metadata": {"team": "red"}, "project": "docks"}, ["fleets"]),
        ({"has_metadata": {"tags": ["b"]}}, ["fleet/1"]),
        ({"has_metadata": {"nested": {"deep": 1.5}}}, ["other%"]),
        ({"has_metadata": {"nested": "\x00"}}, []),
        ({"session_prefix": "\x00"}, []),
    ],
)
def test_a_list_holds_what_its_filters_say(fleet, wanted, found):
    listed = a_store().list_conversations(**wanted)

    assert [each.session_id for each in listed] == found


def test_after_the_clock_was_set_back_a_change_is_not_earlier_than_the_one_before(fleet):
    ahead = timezone.now() + timedelta(hours=1)
    Conversation.objects.filter(pk=fleet[0].conversation_id).update(updated_at=ahead)

    changed = a_store().change_conversation(conversation_id=fleet[0].conversation_id, title="Ahead")

    assert changed.updated_at == ahead


def test_a_list_of_what_changed_since_a_moment_holds_what_was_appended_to(fleet):
    store, more = a_store(), [NewMessage(Role.USER, "more", idempotency_key="k1")]
    store.append_messages(conversation_id=fleet[3].conversation_id, messages=more)
    before = store.get_conversation(conversation_id=fleet[3].conversation_id).updated_at
    for each in (fleet[0], fleet[3]):
        store.append_messages(conversation_id=each.conversation_id, messages=more)

    changed = store.list_conversations(updated_since=before + timedelta(microseconds=1))

    assert [each.session_id for each in changed] == ["fleet/1"]


def test_pages_follow_each_other_newest_first(fleet):
    first = a_store().list_conversations(newest_first=True, limit=2)
    rest = a_store().list_conversations(newest_first=True, limit=2, after_id=first[-1].conversation_id)

    assert [each.session_id for each in [*first, *rest]] == ["other%", "fleets", "fleet/2", "fleet/1"]


def test_a_new_title_and_metadata_are_in_the_audit_log_by_their_hashes(fleet):
    store = a_store()
    given = {"title": "To Rome", "metadata": {"team": "green"}}

    changed = store.change_conversation(conversation_id=fleet[0].conversation_id, **given)

    assert (changed.title, changed.metadata) == ("To Rome", {"team": "green"})
    act = AuditEntry.objects.get(act="change_conversation")
    assert (act.conversation_id, set(act.detail["sha256"])) == (fleet[0].conversation_id, {"title", "metadata"})
    assert "green" not in str(act.detail)


def test_what_is_not_given_stays_and_what_is_the_same_is_no_change(fleet):
    store = a_store()
    title = {"conversation_id": fleet[0].conversation_id, "title": "To Rome"}
    store.change_conversation(**title)

    again = store.change_conversation(**title)

    assert again.metadata == fleet[0].metadata
    assert AuditEntry.objects.filter(act="change_conversation").count() == 1


def test_metadata_that_no_column_holds_is_refused(fleet):
    with pytest.raises(Invalid):
        a_store().change_conversation(conversation_id=fleet[0].conversation_id, metadata={"a": "\x00"})


def test_an_append_sent_again_after_its_answer_was_lost_is_not_stale():
    store, conversation = a_store(), a_conversation("one")
    sent = {
        "conversation_id": conversation.conversation_id,
        "messages": [NewMessage(Role.USER, "two", idempotency_key="k2")],
        "expected_seq": 1,
    }

    first, again = store.append_messages(**sent), store.append_messages(**sent)

    assert first.messages[0].created
    assert not again.messages[0].created
    with pytest.raises(StaleHead):
        store.append_messages(
            **{**sent, "messages": [*sent["messages"], NewMessage(Role.USER, "x", idempotency_key="k3")]}
        )
    assert Conversation.objects.get(pk=conversation.conversation_id).next_seq == 3


def test_a_conversation_without_a_title_is_listed_with_its_first_prompt():
    workspace = a_workspace("prompts")
    store = a_store(workspace)
    added = NewPart(PartType.TEXT, text_content="<system-reminder>Be brief.</system-reminder>", is_synthetic=True)
    asked = NewPart(PartType.TEXT, text_content="\n Which port? \nIt is urgent.")
    result = NewPart(PartType.TOOL, tool_call_id="c", tool_output="5433")
    for name, title, *messages in (
        ("titled", "Ports", NewMessage(Role.USER, "Which port?")),
        ("added", None, NewMessage(Role.USER, parts=(added, asked))),
        ("results", None, NewMessage(Role.USER, parts=(result,)), NewMessage(Role.USER, "word " * 40)),
        ("silent", None, NewMessage(Role.ASSISTANT, "Hello.")),
        ("withheld", None, NewMessage(Role.USER, "A secret.")),
    ):
        conversation = a_conversation(session_id=name, title=title, workspace=workspace)
        store.append_messages(conversation_id=conversation.conversation_id, messages=messages)
    held = Message.objects.get(content="A secret.")
    Quarantines.from_settings(store.scope).quarantine(id=f"msg_{held.message_id}", reason="secret")

    listed = {each.session_id: each.first_prompt for each in store.list_conversations()}
    browsed = {
        each.conversation.session_id: each.conversation.first_prompt
        for each in RetrievalEngine.from_settings(store.scope).browse().conversations
    }

    assert listed == browsed
    assert listed == {
        "titled": None, "added": "Which port?", "results": ("word " * 16)[:79] + "…", "silent": None, "withheld": None
    }  # fmt: skip

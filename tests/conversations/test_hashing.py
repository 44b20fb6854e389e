"""What a hash seals. That each is computed as docs/ledger.md says, the verifier of tests/conversations/ledger shows."""

from __future__ import annotations

import hashlib
from decimal import Decimal

import pytest

from conversations.content import hashing
from conversations.models import Conversation, Message
from tests.conversations.appending import keyed
from tests.factories import a_conversation, a_store, say


def test_equal_values_have_one_hash_whatever_their_order_and_form():
    part, metadata = hashing.part_hash, hashing.metadata_hash

    assert part({"tool_name": "grep", "tool_output": None}) == part({"tool_name": "grep"})
    assert part({"tool_input": {"b": 2, "a": 1}, "a": 1}) == part({"a": 1, "tool_input": {"a": 1, "b": 2}})
    assert part({"step_cost": Decimal("0.10")}) == part({"step_cost": Decimal("0.1")})
    assert metadata({"a": 1, "b": [None]}) == metadata({"b": [None], "a": 1})
    assert metadata({}) is None


def test_whatever_is_sealed_changes_the_hash():
    x, part = hashing.content_hash("x"), hashing.part_hash({"part_type": "text"})
    entry, summary = hashing.entry_hash, hashing.summary_hash
    hashes = [
        *(hashing.part_hash(each) for each in ({}, {"a": "b"}, {"a": "b "}, {"a": "b", "c": ""}, {"c": "b"})),
        *(hashing.metadata_hash({"a": each}) for each in (1, "1")),
        entry(role="user", author=None, content=x, parts=[part]),
        entry(role="tool", author=None, content=x, parts=[part]),
        entry(role="user", author="Ann", content=x, parts=[part]),
        entry(role="user", author=None, content=hashing.content_hash("y"), parts=[part]),
        entry(role="user", author=None, content=x, parts=[]),
        entry(role="user", author=None, content=x, parts=[part, part]),
        *(summary(sources, text) for sources, text in ((["a", "b"], "y"), (["b", "a"], "x"), (["a"], "\ud800"))),
        summary(["a", "b"], "x"),
    ]

    assert len(set(hashes)) == len(hashes)
    assert hashes[-1] == hashlib.sha256(b"a,b|x").digest()


@pytest.mark.django_db
def test_nothing_is_recorded_before_what_stands_before_it_though_the_clock_be_set_back():
    conversation_id = a_conversation("one").conversation_id
    Conversation.objects.filter(pk=conversation_id).update(updated_at="2100-01-01T00:00:00Z")

    say(conversation_id, "two")
    a_store().configure_conversation(conversation_id=conversation_id, overrides={})
    say(conversation_id, "three")

    messages = Message.objects.filter(conversation_id=conversation_id).order_by("seq")
    recorded = list(messages.values_list("recorded_at", flat=True))
    assert recorded == sorted(recorded)
    assert recorded[2].year == 2100


@pytest.mark.django_db
def test_a_retry_with_other_keys_order_is_the_same_message():
    conversation_id = a_conversation().conversation_id
    [first] = say(conversation_id, keyed("k", metadata={"b": 1, "a": 2})).messages

    [again] = say(conversation_id, keyed("k", metadata={"a": 2, "b": 1})).messages

    assert (again.message_id, again.created) == (first.message_id, False)
    assert list(a_store().get_message(message_id=first.message_id).metadata) == ["b", "a"]

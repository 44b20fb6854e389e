from __future__ import annotations

import hashlib
import struct
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from conversations.content import hashing
from conversations.models import Conversation, Message
from conversations.types import NewMessage, Role
from tests.conversations.appending import append, keyed
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result


def microseconds_of(moment: datetime) -> bytes:
    return struct.pack(">q", (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))


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
def test_each_message_chains_the_one_before_it():
    """As anybody can check with SHA-256 alone: the link before it, entry, times, metadata, record."""
    conversation_id = a_conversation("one", "two").conversation_id
    append(
        conversation_id,
        a_tool_call("call_1", path="x"),
        a_tool_result("call_1", "three"),
        NewMessage(Role.USER, "four", metadata={"by": "Ann"}),
    )

    link = b""
    for message in Message.objects.filter(conversation_id=conversation_id).order_by("seq"):
        link = hashlib.sha256(
            link
            + bytes(message.entry_hash)
            + microseconds_of(message.created_at)
            + microseconds_of(message.recorded_at)
            + bytes(message.metadata_hash or b"")
            + b"record:"
            + bytes(message.record_hash)
        ).digest()
        assert bytes(message.chain_hash) == link

    assert bytes(Conversation.objects.get(pk=conversation_id).chain_head) == link


def test_an_event_id_is_a_ulid_of_the_moment_and_the_chain():
    """The moment is that of the example in the ULID specification's own implementations: 01ARZ3NDEK."""
    recorded_at = datetime.fromtimestamp(1469922850.259, UTC)

    event_id = hashing.event_id(recorded_at=recorded_at, chain_hash=bytes(10) + b"never read")

    assert event_id == "01ARZ3NDEK" + "0" * 16
    assert hashing.event_id(recorded_at=recorded_at, chain_hash=b"\xff" * 32) == "01ARZ3NDEK" + "Z" * 16


@pytest.mark.django_db
def test_nothing_is_recorded_before_what_stands_before_it_though_the_clock_be_set_back():
    conversation_id = a_conversation("one").conversation_id
    Conversation.objects.filter(pk=conversation_id).update(updated_at="2100-01-01T00:00:00Z")

    append(conversation_id, NewMessage(Role.USER, "two"))
    a_store().configure_conversation(conversation_id=conversation_id, overrides={})
    append(conversation_id, NewMessage(Role.USER, "three"))

    messages = Message.objects.filter(conversation_id=conversation_id).order_by("seq")
    recorded = list(messages.values_list("recorded_at", flat=True))
    assert recorded == sorted(recorded)
    assert recorded[2].year == 2100


def test_a_record_seals_key_tokens_order_of_keys_and_files_as_canonical_json():
    counted = {"token_count": 3, "token_counter": "o200k_base"}
    files = [["file_1", None, 0, "file_url", None, None]]

    full = hashing.record_hash(idempotency_key="\u00e9", keys="00", files=files, **counted)
    least = hashing.record_hash(idempotency_key=None, **counted)

    text = '"token_count":3,"token_counter":"o200k_base"}'
    entry = '{"files":[["file_1",null,0,"file_url",null,null]],"idempotency_key":"\\u00e9","keys":"00",'
    assert full == hashlib.sha256((entry + text).encode()).digest()
    assert least == hashlib.sha256(("{" + text).encode()).digest()


def test_the_order_of_json_keys_is_sealed_where_it_is_not_the_sorted_one():
    assert hashing.key_order({}, []) is None
    assert hashing.key_order({"a": 1, "b": 2}, [({"a": {"x": 1, "y": 2}}, None)]) is None
    assert hashing.key_order({}, [("text", None), (None, [1])]) is None
    assert (
        hashing.key_order({"b": 1, "a": 2}, [(None, {"z": 1})])
        == hashlib.sha256(b'[{"b":1,"a":2},[null,{"z":1}]]').hexdigest()
    )
    assert hashing.key_order({}, [({"a": [{"y": 1, "x": 2}]}, None)]) is not None


@pytest.mark.django_db
def test_a_retry_with_other_keys_order_is_the_same_message():
    conversation_id = a_conversation().conversation_id
    [first] = append(conversation_id, keyed("k", metadata={"b": 1, "a": 2})).messages

    [again] = append(conversation_id, keyed("k", metadata={"a": 2, "b": 1})).messages

    assert (again.message_id, again.created) == (first.message_id, False)
    assert list(a_store().get_message(message_id=first.message_id).metadata) == ["b", "a"]

from __future__ import annotations

import hashlib
import struct
from decimal import Decimal

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from conversations import hashing
from conversations.models import Conversation, Message
from conversations.types import NewMessage, Role
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result


def test_the_content_hash_is_the_sha_256_of_the_bytes():
    assert hashing.content_hash("söme text") == hashlib.sha256("söme text".encode()).digest()


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_different_texts_have_different_hashes(one, other):
    same_bytes = one.encode("utf-8", "surrogatepass") == other.encode("utf-8", "surrogatepass")

    assert (hashing.content_hash(one) == hashing.content_hash(other)) is same_bytes


@pytest.mark.parametrize(
    "other",
    [
        {"tool_name": "grep", "tool_input": {"a": 1, "b": 2}, "tool_output": None},
        {"tool_input": {"b": 2, "a": 1}, "tool_name": "grep"},
    ],
)
def test_a_part_is_the_same_whatever_the_order_of_keys_and_the_absent_columns(other):
    part = {"tool_name": "grep", "tool_input": {"a": 1, "b": 2}}

    assert hashing.part_hash(other) == hashing.part_hash(part)


@pytest.mark.parametrize(
    "other",
    [{"tool_name": "grep "}, {"tool_name": "grep", "tool_title": ""}, {"tool_title": "grep"}, {}],
)
def test_any_other_value_is_another_part(other):
    assert hashing.part_hash(other) != hashing.part_hash({"tool_name": "grep"})


def test_equal_prices_are_one_price():
    assert hashing.part_hash({"step_cost": Decimal("0.10")}) == hashing.part_hash({"step_cost": Decimal("0.1")})


def test_an_entry_seals_role_author_content_and_parts():
    content, part = hashing.content_hash("x"), hashing.part_hash({"part_type": "text"})
    entry = hashing.entry_hash(role="user", author=None, content=content, parts=[part])

    others = [
        hashing.entry_hash(role="tool", author=None, content=content, parts=[part]),
        hashing.entry_hash(role="user", author="Ann", content=content, parts=[part]),
        hashing.entry_hash(role="user", author=None, content=hashing.content_hash("y"), parts=[part]),
        hashing.entry_hash(role="user", author=None, content=content, parts=[]),
        hashing.entry_hash(role="user", author=None, content=content, parts=[part, part]),
    ]

    assert len({entry, *others}) == 6


def test_a_summary_hash_seals_the_sources_in_order_and_the_text():
    hashes = {
        hashing.summary_hash(sources, text)
        for sources, text in ((["a", "b"], "x"), (["b", "a"], "x"), (["a", "b"], "y"), (["a"], "x"), (["a"], "\ud800"))
    }

    assert len(hashes) == 5
    assert hashing.summary_hash(["a", "b"], "x") == hashlib.sha256(b"a,b|x").digest()


@pytest.mark.django_db
def test_each_message_chains_the_one_before_it():
    """As anybody can check with SHA-256 alone: predecessor's link, entry, and the microseconds of its time."""
    conversation, store = a_conversation("one", "two"), a_store()
    conversation_id = conversation.conversation_id
    store.append_messages(
        conversation_id=conversation_id,
        messages=[a_tool_call("call_1", path="x"), a_tool_result("call_1", "three"), NewMessage(Role.USER, "four")],
    )

    link = b""
    for message in Message.objects.filter(conversation_id=conversation_id).oldest_first():
        microseconds = round(message.created_at.timestamp() * 1_000_000)
        link = hashlib.sha256(link + bytes(message.entry_hash) + struct.pack(">q", microseconds)).digest()
        assert bytes(message.chain_hash) == link

    assert bytes(Conversation.objects.get(pk=conversation_id).chain_head) == link


@pytest.mark.django_db
def test_the_database_says_the_chain_in_the_same_words():
    conversation_id = a_conversation("one", "two", "three").conversation_id

    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT seq, chain_hash = lcm_chain('\\x', entry_hash, created_at) OVER (ORDER BY seq)
            FROM messages WHERE conversation_id = %s ORDER BY seq
            """,
            [conversation_id],
        )
        assert cursor.fetchall() == [(1, True), (2, True), (3, True)]

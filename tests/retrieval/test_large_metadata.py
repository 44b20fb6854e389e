"""Messages that were stored before metadata were bounded: an assembled context shows how much it left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conversations.types import NewMessage, NewPart, PartType, Role
from retrieval.assembler import ContextAssembler
from tests.factories import a_conversation, a_store

pytestmark = pytest.mark.django_db

LARGE = "abcdefghij" * 100_000


def test_a_context_says_how_many_bytes_of_metadata_it_left_out():
    store = a_store()
    older = replace(store, policy=replace(store.policy, max_metadata_bytes=10**9))
    conversation = a_conversation()
    older.append_messages(
        conversation_id=conversation.conversation_id,
        messages=[
            NewMessage(Role.USER, "in order", metadata={"x": LARGE}),
            NewMessage(Role.USER, "not in order, and \x00", metadata={"zz": LARGE, "a": 1}),
            NewMessage(
                Role.USER, parts=(NewPart(PartType.TEXT, text_content="of a part", metadata={"zz": LARGE, "a": 1}),)
            ),
            NewMessage(Role.USER, "small", metadata={"zz": 1, "a": ["kept"]}),
        ],
    )

    items = ContextAssembler.from_settings().assemble(conversation_id=conversation.conversation_id).items
    stored = store.list_messages(conversation_id=conversation.conversation_id)

    assert [item.text for item in items] == ["in order", "not in order, and \x00", "of a part", "small"]
    for metadata in (items[0].metadata, items[1].metadata, items[2].parts[0].metadata):
        assert list(metadata) == ["lcm:bytes_left_out"] and metadata["lcm:bytes_left_out"] > len(LARGE)
    assert items[3].metadata == {"zz": 1, "a": ["kept"]}
    # The messages themselves have everything.
    assert stored[0].metadata == {"x": LARGE} and stored[2].parts[0].metadata == {"zz": LARGE, "a": 1}

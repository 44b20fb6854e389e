from __future__ import annotations

from dataclasses import replace

import pytest

from conversations.errors import Conflict, Invalid
from conversations.types import NewMessage, NewPart, PartType, Role
from tests.conversations.appending import (
    PART,
    append,
    assert_counters_are_recounts,
    keyed,
    stored,
)
from tests.factories import a_conversation


@pytest.mark.parametrize(
    "other",
    [
        keyed("k1", "other text"),
        replace(keyed("k1"), role=Role.ASSISTANT),
        keyed("k1", author="Ann"),
        keyed("k1", parts=(PART, PART)),
        keyed("k1", parts=()),
        keyed("k1", parts=(replace(PART, is_ignored=True),)),
        keyed("k1", parts=(NewPart(PartType.REASONING, text_content="text"),)),
    ],
    ids=["content", "role", "author", "more parts", "fewer parts", "a column", "a part type"],
)
def test_the_same_key_with_other_content_is_a_conflict_and_nothing_is_written(conversation_id, other):
    append(conversation_id, keyed("k1", parts=(PART,)))

    with pytest.raises(Conflict, match="'k1'"):
        append(conversation_id, keyed("k0"), other, keyed("k2"))

    assert [message.idempotency_key for message in stored(conversation_id)] == ["k1"]
    assert_counters_are_recounts(conversation_id)


def test_a_batch_may_hold_stored_and_new_messages_in_any_order(conversation_id):
    before = append(conversation_id, keyed("b", "B"), keyed("d", "D"))
    batch = [
        keyed("a", "A", parts=(PART,)),
        keyed("b", "B"),
        NewMessage(Role.USER, "free"),
        keyed("d", "D"),
        keyed("e", "E", parts=(PART, PART)),
    ]

    result = append(conversation_id, *batch)

    assert [message.seq for message in result.messages] == [3, 1, 4, 2, 5]
    assert [message.created for message in result.messages] == [True, False, True, False, True]
    assert [message.message_id for message in result.messages][1::2] == [each.message_id for each in before.messages]
    after = stored(conversation_id)
    assert [message.content for message in after] == ["B", "D", "A", "free", "E"]
    assert [len(message.parts) for message in after] == [0, 0, 1, 0, 2]
    assert [message.message_id for message in after] == sorted(message.message_id for message in after)
    assert_counters_are_recounts(conversation_id)


def test_a_key_belongs_to_its_conversation(conversation_id):
    other = a_conversation().conversation_id

    results = [append(each, keyed("k1", text)) for each, text in ((conversation_id, "one"), (other, "two"))]

    assert [result.messages[0].created for result in results] == [True, True]


def test_two_messages_of_a_batch_cannot_share_a_key(conversation_id):
    with pytest.raises(Invalid, match="same idempotency_key, 'k1'"):
        append(conversation_id, keyed("k1"), keyed("k1"))

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from conversations.errors import Invalid, NotFound
from conversations.models import Message, MessagePart
from conversations.signals import messages_appended
from conversations.types import Counters, NewMessage, NewPart, PartType, Role
from tests.conversations.appending import (
    append,
    assert_counters_are_recounts,
    keyed,
    stored,
)
from tests.factories import a_conversation, a_store, a_tool_result

OVERHEAD = 4


def test_what_was_appended_is_told_as_it_is_stored(conversation_id):
    before = datetime.now(UTC)

    result = append(conversation_id, NewMessage(Role.USER, "hello world"))

    (told,), (record,) = result.messages, stored(conversation_id)
    assert (told.message_id, told.seq, told.token_count) == (record.message_id, record.seq, record.token_count)
    assert told.content_hash == record.content_hash
    assert told.id == record.id == f"msg_{record.message_id}"
    assert before <= record.created_at <= datetime.now(UTC)
    assert (record.token_count, record.token_counter) == (2, "o200k_base")
    assert result.counters == Counters(message_count=1, active_messages=1, active_tokens=2 + OVERHEAD, total_tokens=2)


def test_a_thousand_messages_go_in_at_once(conversation_id):
    append(conversation_id, *(NewMessage(Role.USER, f"text {n}") for n in range(1000)))

    assert [message.content for message in stored(conversation_id)] == [f"text {n}" for n in range(1000)]
    assert_counters_are_recounts(conversation_id)


def test_an_append_is_one_statement_whatever_it_carries(conversation_id, django_assert_num_queries):
    store = a_store()
    messages = [keyed(str(n), parts=(NewPart(PartType.TEXT), NewPart(PartType.AGENT))) for n in range(100)]

    with django_assert_num_queries(1):
        store.append_messages(conversation_id=conversation_id, messages=messages)


def test_each_part_of_a_batch_keeps_its_own_text_be_it_its_messages_or_another(conversation_id):
    # What parts repeat of their message goes to the database once; a message that is stored already shifts the others.
    append(conversation_id, keyed("there", "first"))
    said = (
        keyed("there", "first"),
        NewMessage(Role.USER, parts=(NewPart(PartType.TEXT, text_content="second"),)),
        a_tool_result("call", "third"),
        NewMessage(Role.USER, "fourth", parts=(NewPart(PartType.TEXT, text_content="an echo of fourth"),)),
        NewMessage(
            Role.TOOL,
            "fifth",
            parts=(NewPart(PartType.TOOL, text_content="fifth", tool_output="fifth", tool_name="t"),),
        ),
        NewMessage(Role.USER, "", parts=(NewPart(PartType.TEXT, text_content=""), NewPart(PartType.AGENT))),
    )

    append(conversation_id, *said)

    kept = [[(part.text_content, part.tool_output) for part in message.parts] for message in stored(conversation_id)]
    assert kept == [[(part.text_content, part.tool_output) for part in message.parts] for message in said]


# What only a caller in Python can give; the others are in tests/lcmsite/bad_appends.py.
BAD: dict[str, tuple[NewMessage, str]] = {
    "role": (NewMessage("robot", "x"), "robot"),  # type: ignore[arg-type]
    "content": (NewMessage(Role.USER, 5), "content must be a text"),  # type: ignore[arg-type]
    "text": (NewMessage(Role.USER, "x", (NewPart(PartType.TEXT, text_content=5),)), "text_content"),  # type: ignore[arg-type]
    "number": (NewMessage(Role.USER, "x", (NewPart(PartType.TEXT, step_tokens_in=True),)), "step_tokens_in"),
    "files": (NewMessage(Role.USER, "x", (NewPart(PartType.PATCH, patch_files=(1,)),)), "patch_files"),  # type: ignore[arg-type]
    "price": (NewMessage(Role.USER, "x", (NewPart(PartType.TEXT, step_cost=Decimal("NaN")),)), "step_cost"),
    "no json": (NewMessage(Role.USER, "x", (NewPart(PartType.TOOL, tool_input={1, 2}),)), "JSON"),
    "no zone": (NewMessage(Role.USER, "x", created_at=datetime(2026, 1, 31)), "created_at"),
    "long name": (NewMessage(Role.USER, "x", author="k" * 501), "author"),
}


@pytest.mark.parametrize(("message", "sentence"), BAD.values(), ids=BAD)
def test_one_bad_message_keeps_its_whole_batch_out(conversation_id, message, sentence):
    append(conversation_id, NewMessage(Role.USER, "before"))

    with pytest.raises(Invalid, match=f"Message 2 of 3: .*{sentence}"):
        append(conversation_id, NewMessage(Role.USER, "good"), message, NewMessage(Role.USER, "good"))

    assert [each.content for each in stored(conversation_id)] == ["before"]
    assert MessagePart.objects.count() == 0
    assert_counters_are_recounts(conversation_id)


@pytest.mark.parametrize("unknown", [0, -1, 2**62])
def test_a_conversation_that_is_not_there_takes_nothing(db, unknown):
    with pytest.raises(NotFound):
        append(unknown, NewMessage(Role.USER, "x"))

    assert not Message.objects.exists()


def test_listeners_hear_what_the_conversation_now_holds(db):
    conversation_id = a_conversation(overrides={"fresh_tail_count": 3}).conversation_id
    heard: list[dict[str, Any]] = []

    def listen(**values: Any) -> None:
        heard.append(values)

    messages_appended.connect(listen)
    try:
        result = append(conversation_id, NewMessage(Role.USER, "x"))
    finally:
        messages_appended.disconnect(listen)

    assert [(each["conversation_id"], each["counters"], each["overrides"]) for each in heard] == [
        (conversation_id, result.counters, {"fresh_tail_count": 3})
    ]

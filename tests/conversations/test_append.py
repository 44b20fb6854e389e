from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from conversations.errors import Conflict, Invalid, NotFound, TooLarge
from conversations.models import Message, MessagePart
from conversations.signals import messages_appended
from conversations.types import Counters, NewMessage, NewPart, PartType, Role
from tests.conversations.appending import PART, assert_counters_are_recounts, keyed, stored
from tests.factories import a_conversation, a_store, a_tool_result, say
from tests.lcmsite.callers import Api, an_api_key
from tests.statements import analyze, rows_gone_through

OVERHEAD = 4


def test_what_was_appended_is_told_as_it_is_stored(conversation_id):
    before = datetime.now(UTC)

    result = say(conversation_id, "hello world")

    (told,), (record,) = result.messages, stored(conversation_id)
    assert (told.message_id, told.seq, told.token_count) == (record.message_id, record.seq, record.token_count)
    assert told.content_hash == record.content_hash
    assert told.id == record.id == f"msg_{record.message_id}"
    assert before <= record.created_at <= datetime.now(UTC)
    assert (record.token_count, record.token_counter) == (2, "o200k_base")
    assert result.counters == Counters(message_count=1, active_messages=1, active_tokens=2 + OVERHEAD, total_tokens=2)


def test_equal_messages_without_a_key_are_two_messages(conversation_id):
    say(conversation_id, "again", "again")
    say(conversation_id, "again")

    assert [message.content for message in stored(conversation_id)] == ["again"] * 3


def test_a_thousand_messages_go_in_at_once(conversation_id):
    say(conversation_id, *(f"text {n}" for n in range(1000)))

    assert [message.content for message in stored(conversation_id)] == [f"text {n}" for n in range(1000)]
    assert_counters_are_recounts(conversation_id)


def test_an_append_is_one_statement_whatever_it_carries(conversation_id, django_assert_num_queries):
    store = a_store()
    messages = [keyed(str(n), parts=(NewPart(PartType.TEXT), NewPart(PartType.AGENT))) for n in range(100)]

    with django_assert_num_queries(1):
        store.append_messages(conversation_id=conversation_id, messages=messages)


def test_each_part_of_a_batch_keeps_its_own_text_be_it_its_messages_or_another(conversation_id):
    # What parts repeat of their message goes to the database once; a message that is stored already shifts the others.
    say(conversation_id, keyed("there", "first"))
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

    say(conversation_id, *said)

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
    say(conversation_id, "before")

    with pytest.raises(Invalid, match=f"Message 2 of 3: .*{sentence}"):
        say(conversation_id, "good", message, "good")

    assert [each.content for each in stored(conversation_id)] == ["before"]
    assert MessagePart.objects.count() == 0
    assert_counters_are_recounts(conversation_id)


@pytest.mark.parametrize("unknown", [0, -1, 2**62])
def test_a_conversation_that_is_not_there_takes_nothing(db, unknown):
    with pytest.raises(NotFound):
        say(unknown, "x")

    assert not Message.objects.exists()


def test_listeners_hear_what_the_conversation_now_holds(db):
    conversation_id = a_conversation(overrides={"fresh_tail_count": 3}).conversation_id
    heard: list[dict[str, Any]] = []

    def listen(**values: Any) -> None:
        heard.append(values)

    messages_appended.connect(listen)
    try:
        result = say(conversation_id, "x")
    finally:
        messages_appended.disconnect(listen)

    assert [(each["conversation_id"], each["counters"], each["overrides"]) for each in heard] == [
        (conversation_id, result.counters, {"fresh_tail_count": 3})
    ]


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
    say(conversation_id, keyed("k1", parts=(PART,)))

    with pytest.raises(Conflict, match="'k1'"):
        say(conversation_id, keyed("k0"), other, keyed("k2"))

    assert [message.idempotency_key for message in stored(conversation_id)] == ["k1"]
    assert_counters_are_recounts(conversation_id)


def test_a_batch_may_hold_stored_and_new_messages_in_any_order(conversation_id):
    before = say(conversation_id, keyed("b", "B"), keyed("d", "D"))
    batch = [
        keyed("a", "A", parts=(PART,)),
        keyed("b", "B"),
        NewMessage(Role.USER, "free"),
        keyed("d", "D"),
        keyed("e", "E", parts=(PART, PART)),
    ]

    result = say(conversation_id, *batch)

    assert [message.seq for message in result.messages] == [3, 1, 4, 2, 5]
    assert [message.created for message in result.messages] == [True, False, True, False, True]
    assert [message.message_id for message in result.messages][1::2] == [each.message_id for each in before.messages]
    after = stored(conversation_id)
    assert [message.content for message in after] == ["B", "D", "A", "free", "E"]
    assert [len(message.parts) for message in after] == [0, 0, 1, 0, 2]
    assert [message.message_id for message in after] == sorted(message.message_id for message in after)
    assert_counters_are_recounts(conversation_id)


def test_a_keyed_append_reads_no_more_rows_in_a_longer_conversation(conversation_id):
    for first in range(0, 3000, 1000):
        say(conversation_id, *(keyed(f"key {number}") for number in range(first, first + 1000)))
    analyze("messages")
    before = rows_gone_through()

    say(conversation_id, keyed("key 3000"))

    assert rows_gone_through() - before < 100


def test_keys_are_found_without_reading_the_conversation_before_its_length_is_known(conversation_id):
    for _ in range(200):
        say(a_conversation().conversation_id, keyed("1", "x" * 200), keyed("2", "y" * 200))
    analyze("messages")
    batches = [[keyed(f"key {first + number}") for number in range(100)] for first in range(0, 1000, 100)]
    before = rows_gone_through("messages")

    created = [each.created for batch in (*batches, *batches) for each in say(conversation_id, *batch).messages]
    for number in range(10):
        say(conversation_id, keyed(f"one {number}"))

    assert created == [True] * 1000 + [False] * 1000
    assert rows_gone_through("messages") - before < 50_000


def test_a_key_belongs_to_its_conversation(conversation_id):
    other = a_conversation().conversation_id

    results = [say(each, keyed("k1", text)) for each, text in ((conversation_id, "one"), (other, "two"))]

    assert [result.messages[0].created for result in results] == [True, True]


def test_two_messages_of_a_batch_cannot_share_a_key(conversation_id):
    with pytest.raises(Invalid, match="same idempotency_key, 'k1'"):
        say(conversation_id, keyed("k1"), keyed("k1"))


MUCH = "x" * 65_536

TOO_MUCH = {
    "messages[1].metadata": {"role": "user", "content": "a", "metadata": {"x": MUCH}},
    "messages[1].parts[0].metadata": {
        "role": "user",
        "parts": [{"part_type": "text", "text_content": "a", "metadata": {"x": MUCH}}],
    },
    "messages[1].parts[1].tool_input": {
        "role": "user",
        "parts": [
            {"part_type": "text", "text_content": "a"},
            {"part_type": "text", "text_content": "b", "tool_input": [MUCH]},
        ],
    },
    "messages[1].parts[0].snapshot_hash": {
        "role": "user",
        "content": "a",
        "parts": [{"part_type": "snapshot", "snapshot_hash": MUCH + "x"}],
    },
}


def posted(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    reply = Api(an_api_key()).post(path, body)
    return reply.status, reply.body


@pytest.mark.parametrize("field", TOO_MUCH)
def test_an_append_with_too_much_beside_its_texts_is_refused_by_the_name_of_the_field(conversation_id, field):
    messages = [{"role": "user", "content": "good"}, TOO_MUCH[field]]

    status, problem = posted(f"conversations/{conversation_id}/messages/", {"messages": messages})

    assert (status, problem["code"], problem["context"]["field"]) == (413, "metadata_too_large", field)
    assert field in problem["detail"]
    assert stored(conversation_id) == []


def test_many_small_metadata_of_one_message_count_together(conversation_id):
    parts = tuple(NewPart(PartType.TEXT, text_content="a", metadata={"x": "y" * 1000}) for _ in range(100))

    with pytest.raises(TooLarge):
        say(conversation_id, NewMessage(Role.USER, parts=parts))


def test_texts_calls_results_and_attachments_are_bounded_otherwise(conversation_id):
    parts = (
        NewPart(PartType.TEXT, text_content="word " * 20_000),
        NewPart(PartType.TOOL, tool_name="write", tool_call_id="1", tool_input={"text": "word " * 20_000}),
        NewPart(PartType.TOOL, tool_name="write", tool_call_id="1", tool_output="word " * 20_000),
        NewPart(PartType.FILE, file_url="data:image/png;base64," + "A" * 100_000),
    )

    appended = say(conversation_id, NewMessage(Role.USER, parts=parts, metadata={"x": "y" * 60_000}))

    assert appended.counters.message_count == 1


def test_metadata_of_a_conversation_and_of_a_boundary_have_the_same_bound(db):
    boundaries = f"conversations/{a_conversation('a').conversation_id}/boundaries/"

    opened = posted("conversations/", {"session_id": "new", "metadata": {"x": MUCH}})
    bounded = posted(boundaries, {"host_reference": "cut", "last_seq": 1, "metadata": {"x": MUCH}})

    assert [(status, problem["code"]) for status, problem in (opened, bounded)] == [(413, "metadata_too_large")] * 2

"""A message that comes alone goes in by a statement of its own: it must leave the very rows that a batch leaves."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection

from conversations.types import NewMessage, NewPart, PartType, Role
from tests.conversations.appending import (
    UNLIKE_TEXT,
    append,
    assert_counters_are_recounts,
    at_once,
    keyed,
    shown,
    stored,
)
from tests.conversations.test_at_once import assert_chain_is_whole
from tests.factories import a_conversation, a_store
from tests.statements import counted_statements

VALUES: dict[str, Any] = {
    **UNLIKE_TEXT,
    "patch_files": ("a.py", "ü/b.py", "{"),
    "tool_input": {"z": [1, 1.0, None], "a": {"nested": "\x00"}},
    "metadata": {"a": None, "b": [True]},
}
EVERYTHING = NewPart(
    **{each.name: VALUES.get(each.name, f"the {each.name} \x00 '\\") for each in fields(NewPart)}
    | {"part_type": PartType.TOOL}
)
MOMENT = datetime(2024, 2, 29, 23, 59, 59, 123_456, tzinfo=UTC)


def _alone(**values: Any) -> NewMessage:
    """A message whose one part is a tool's."""
    return NewMessage(Role.TOOL, parts=(NewPart(PartType.TOOL, **values),), created_at=MOMENT)


MESSAGES = {
    "a text": NewMessage(Role.USER, "ordinary", created_at=MOMENT),
    "no text": NewMessage(Role.USER, "", created_at=MOMENT),
    "characters no column takes": NewMessage(Role.TOOL, "NUL \x00, half \ud800, 'quote' \\", created_at=MOMENT),
    "everything": NewMessage(
        Role.ASSISTANT, "x", parts=(EVERYTHING, NewPart(PartType.TEXT, "y"), EVERYTHING), author="Ann",
        created_at=MOMENT, idempotency_key="k", metadata={"none": None, "z": 1.50, "a": "\x00"},
    ),
    "parts alone": NewMessage(Role.SYSTEM, parts=(NewPart(PartType.TEXT, "said"),), created_at=MOMENT),
    "a call": _alone(tool_call_id="c", tool_name="grep", tool_input={"a": {"b": ["ü", None]}}, tool_status="pending"),
    "a call with a text": _alone(tool_call_id="c", tool_name="grep", tool_input='a "text"'),
    "a call that jsonb would change": _alone(tool_call_id="c", tool_name="grep", tool_input={"bb": 1.0, "a": 2}),
    "an answer": _alone(tool_call_id="c", tool_output="found \\ 'it'", tool_status="completed"),
    "an answer with a title": _alone(tool_call_id="c", tool_output="found", tool_title="Search"),
    "an empty text": NewMessage(Role.USER, parts=(NewPart(PartType.TEXT, ""),), created_at=MOMENT),
    "plain metadata": NewMessage(Role.USER, "x", created_at=MOMENT, metadata={"a": None, "bb": "ü"}),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_alone_and_in_a_batch_leave_the_same_rows(db, name):
    alone, together = (a_conversation().conversation_id for _ in range(2))

    one = append(alone, MESSAGES[name])
    many = append(together, MESSAGES[name], NewMessage(Role.USER, "another"))

    assert [replace(each, message_id=0) for each in one.messages] == [replace(many.messages[0], message_id=0)]
    for table in ("messages", "message_parts", "context_items"):
        assert rows_of(alone, table) == rows_of(together, table)
    assert len(rows_of(alone, "message_parts")) == len(MESSAGES[name].parts)
    assert_counters_are_recounts(alone)
    assert_chain_is_whole(alone)


# What tells one conversation, or one moment, from another.
OTHERS = {"part_id", "message_id", "session_id", "conversation_id", "content_tsv", "recorded_at", "chain_hash"}
OF_THE_FIRST = "message_id = (SELECT min(message_id) FROM messages WHERE conversation_id = %s)"


def rows_of(conversation_id: int, table: str) -> list[dict[str, Any]]:
    """The rows of the first message as they lie in the table, but for what must be different."""
    others = OTHERS | {"created_at"} if table == "context_items" else OTHERS
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} WHERE {OF_THE_FIRST} ORDER BY 1", [conversation_id])
        names = [column.name for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return [{name: value for name, value in row.items() if name not in others} for row in rows]


def test_messages_that_come_one_by_one_stand_in_order_and_are_counted(conversation_id):
    told = [append(conversation_id, message) for message in MESSAGES.values()]

    seqs = [message.seq for result in told for message in result.messages]
    assert seqs == list(range(1, len(MESSAGES) + 1))
    assert shown(conversation_id) == [(result.messages[0].seq, result.messages[0].message_id) for result in told]
    assert told[-1].counters.message_count == len(MESSAGES)
    assert_counters_are_recounts(conversation_id)
    assert_chain_is_whole(conversation_id)


@pytest.mark.parametrize("key", [None, "k"], ids=["without a key", "with a key"])
def test_a_new_message_is_one_statement(conversation_id, key):
    store = a_store()

    with counted_statements() as asked:
        store.append_messages(
            conversation_id=conversation_id, messages=[NewMessage(Role.USER, "new", idempotency_key=key)]
        )

    assert len(asked) == 1


def test_long_messages_that_stay_whole_cost_one_look_at_the_settings(conversation_id):
    store = a_store()
    messages = [NewMessage(Role.USER, "word " * 3000), NewMessage(Role.USER, "short")]

    with counted_statements() as asked:
        result = store.append_messages(conversation_id=conversation_id, messages=messages)

    assert result.moved == ()
    assert len(asked) == 2


def test_writers_at_once_with_one_message_each_leave_no_gap(committed_db):
    conversation_id = a_conversation().conversation_id
    rounds = 10

    told = at_once(lambda writer: [append(conversation_id, keyed(f"{writer} {n}")).messages[0] for n in range(rounds)])

    total = len(told) * rounds
    assert [message.seq for message in stored(conversation_id)] == list(range(1, total + 1))
    assert sorted(message.seq for each in told for message in each) == list(range(1, total + 1))
    assert_counters_are_recounts(conversation_id)
    assert_chain_is_whole(conversation_id)


def test_writers_at_once_with_the_same_key_store_one_message(committed_db):
    conversation_id = a_conversation().conversation_id

    told = at_once(lambda _: [append(conversation_id, keyed(f"k{n}")).messages[0] for n in range(10)])

    assert len(stored(conversation_id)) == 10
    assert [sum(each[n].created for each in told) for n in range(10)] == [1] * 10
    assert {tuple(message.message_id for message in each) for each in told} == {
        tuple(message.message_id for message in stored(conversation_id))
    }
    assert_counters_are_recounts(conversation_id)

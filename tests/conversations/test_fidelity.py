"""What goes in comes out, byte for byte, whatever a column can hold of it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conversations.content.lossless_values import MOST_LEVELS, is_storable, split, survives_jsonb
from conversations.types import NewMessage, NewPart, PartType, Role
from tests.conversations.appending import full_part, stored
from tests.conversations.strategies import as_json_says_it, json_of, plain_texts, texts
from tests.factories import a_store, say


@pytest.mark.parametrize("part_type", PartType)
def test_every_column_of_every_part_type_comes_back(conversation_id, part_type):
    full, empty = full_part(part_type), NewPart(part_type)

    say(conversation_id, NewMessage(Role.ASSISTANT, "x", parts=(full, empty)))

    (message,) = stored(conversation_id)
    for part, given_part in zip(message.parts, (full, empty), strict=True):
        assert {name: getattr(part, name) for name in vars(given_part)} == vars(given_part)
    assert repr(message.parts[0].tool_input) == repr(full.tool_input)
    assert str(message.parts[0].step_cost) == "0.001200"
    assert [(part.part_id, part.ordinal) for part in message.parts] == [
        (f"part_{message.message_id}_{ordinal}", ordinal) for ordinal in (0, 1)
    ]


def test_every_field_of_a_message_comes_back(conversation_id):
    moment = datetime(2024, 2, 29, 23, 59, 59, 123_456, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    given_message = NewMessage(
        Role.SYSTEM,
        "content",
        author="Ann",
        created_at=moment,
        idempotency_key="key",
        metadata={"z": 1, "a": {"float": 1.0}},
    )

    say(conversation_id, given_message)

    (message,) = stored(conversation_id)
    assert (message.role, message.content, message.author) == (Role.SYSTEM, "content", "Ann")
    assert message.created_at == moment
    assert message.idempotency_key == "key"
    assert repr(message.metadata) == repr(given_message.metadata)


HOSTILE = {
    "nul": "a\x00b",
    "lone surrogates": "a\ud800b\udfff",
    "chinese": "数据库连接失败 " * 100,
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈" * 50,
    "controls": "".join(map(chr, range(32))) + "\x7f\u0085\u2028\ufeff\ufffe\uffff",
    "a million blanks": " " * 1_000_000,
    "carriage returns": "a\r\nb\rc\n",
    "not normalized": "e\u0301 é ﬁ Å",
    "backslashes": '\\u0000 \\ " \\\\x00 {} NULL %s $1',
    "empty": "",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_comes_back_byte_for_byte_in_content_and_in_parts(conversation_id, text, settings):
    # Room for the longest of the texts in the metadata of the message and of its part.
    settings.LCM = {**settings.LCM, "max_metadata_bytes": 10_000_000}
    part = NewPart(PartType.TOOL, tool_output=text, tool_input={text: text}, tool_call_id=text)

    say(conversation_id, NewMessage(Role.TOOL, text, parts=(part,), metadata={"text": text}))

    (message,) = stored(conversation_id)
    assert message.content == text
    assert message.metadata == {"text": text}
    assert (message.parts[0].tool_output, message.parts[0].tool_input) == (text, {text: text})
    assert message.parts[0].tool_call_id == text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts, json_of(texts), st.dictionaries(texts, json_of(texts), max_size=3))
def test_any_text_and_any_json_come_back_as_json_says_them(conversation_id, text, tool_input, metadata):
    part = NewPart(PartType.TOOL, tool_input=tool_input, metadata=metadata, text_content=text)
    message_id = (
        say(conversation_id, NewMessage(Role.TOOL, text, parts=(part,), metadata=metadata)).messages[0].message_id
    )

    message = a_store().get_message(message_id=message_id)

    assert message.content == as_json_says_it(text)
    assert repr(message.metadata) == repr(as_json_says_it(metadata))
    assert repr(message.parts[0].tool_input) == repr(as_json_says_it(tool_input))
    assert repr(message.parts[0].metadata) == repr(as_json_says_it(metadata))
    assert message.parts[0].text_content == as_json_says_it(text)


@given(texts, json_of(texts), st.lists(texts, max_size=3).map(tuple))
@example("\ud83d\ude00", {"b": 1, "a": 2}, ("\x00",))
def test_the_columns_overlaid_with_what_is_exact_are_the_values_again(text, value, files):
    values = {"text_content": text, "metadata": value, "patch_files": files}

    columns, exact = split(values)

    again = columns | json.loads(json.dumps(exact))
    assert json.dumps(again) == json.dumps(as_json_says_it(values))
    assert all(map(is_storable, (columns["text_content"], *columns["patch_files"])))
    assert is_storable(json.loads(json.dumps(json.dumps(columns["metadata"], ensure_ascii=False))))


def test_what_the_columns_can_hold_is_not_kept_twice():
    values = {"text_content": "söme 文字 😀", "metadata": {"a": 1, "b": [True, None]}, "patch_files": ("a", "b")}

    assert split(values) == (values, {})
    assert survives_jsonb([{"a": 1, "bb": {"c": [2, "x"]}}, {}, True, None, -(10**100)])


@pytest.mark.django_db
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(json_of(plain_texts))
@example({"b": 1, "a": 2})
@example({"aa": 1, "b": 2})
@example({"ä": 1, "zz": 2})
@example([10**300, -(10**300)])
@example({"a": 1.0})
def test_what_is_said_to_survive_jsonb_does(value):
    with connection.cursor() as cursor:
        cursor.execute("SELECT (%s::jsonb)::text", [json.dumps(value)])
        stored = json.loads(cursor.fetchone()[0])

    assert not survives_jsonb(value) or json.dumps(stored) == json.dumps(value)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (float("nan"), "not JSON compliant"),
        (float("inf"), "not JSON compliant"),
        ({1, 2}, "none that JSON has"),
        (b"bytes", "none that JSON has"),
        (10**5000, "digits"),
    ],
    ids=range(5),
)
def test_a_value_that_json_cannot_say_is_refused(value, sentence):
    with pytest.raises(ValueError, match=sentence):
        split({"metadata": {"a": [value]}})


@pytest.mark.parametrize("around", [lambda inner: [inner], lambda inner: {"in": inner}, lambda inner: (1.5, inner)])
def test_a_value_may_be_nested_deeply_but_not_in_any_number_of_levels(around):
    def nested(levels: int) -> Any:
        value: Any = "innermost"
        for _ in range(levels):
            value = around(value)
        return value

    columns, exact = split({"metadata": nested(MOST_LEVELS)})

    assert columns | exact == json.loads(json.dumps({"metadata": nested(MOST_LEVELS)}))
    for levels in (MOST_LEVELS + 1, 100_000):
        with pytest.raises(ValueError, match="metadata is nested too deeply: it may have 200 levels"):
            split({"metadata": nested(levels)})

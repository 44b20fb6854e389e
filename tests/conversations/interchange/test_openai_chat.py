from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conversations.formats.openai_chat import from_openai_chat, to_openai_chat
from conversations.types import NewMessage, NewPart, PartType, Role
from tests.conversations.real_data import DATA, needs_data
from tests.conversations.records import as_stored


def round_trip(row: dict[str, Any]) -> dict[str, Any]:
    return to_openai_chat(as_stored(from_openai_chat(row)))


def a_call(arguments: str, **changes: Any) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "grep", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call | changes]}


def test_a_plain_text_needs_no_parts():
    message = from_openai_chat({"role": "user", "content": "hello"})

    assert message == NewMessage(Role.USER, "hello")


def test_a_call_lands_in_its_columns_with_its_arguments_as_json():
    message = from_openai_chat(a_call('{"pattern": "def "}'))

    assert message.parts == (
        NewPart(
            PartType.TOOL,
            tool_call_id="call_1",
            tool_name="grep",
            tool_input={"pattern": "def "},
            tool_status="pending",
        ),
    )
    assert as_stored(message).content == '[tool_call grep] {"pattern": "def "}'


def test_a_result_lands_in_its_columns():
    message = from_openai_chat({"role": "tool", "tool_call_id": "call_1", "content": "3 matches"})

    assert message.parts == (
        NewPart(PartType.TOOL, tool_call_id="call_1", tool_output="3 matches", tool_status="completed"),
    )


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a":1,"b":[1,2]}',
        '{"ö": "ü"}',
        '{"\\u00f6": 1}',
        '{"\\u00f6":1}',
        '{"b": 1, "a": 2}',
        '["x"]',
        '{"a": 1.5}',
        "{}",
    ],
)
def test_arguments_in_a_usual_style_are_kept_as_json_and_come_back_byte_for_byte(arguments):
    message = from_openai_chat(a_call(arguments))

    assert message.parts[0].tool_input == json.loads(arguments)
    assert round_trip(a_call(arguments)) == a_call(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        '{ "a": 1 }',
        '{"a": 1, "a": 2}',
        '{"a": 1.50}',
        '{"a": NaN}',
        '{"a": 1e400}',
        "",
        "{",
        "null",
        '"text"',
        "5",
        "[" * 100_000,
        '{"a": %s}' % ("9" * 5000),
    ],
    ids=range(12),
)
def test_any_other_arguments_are_kept_as_they_are_written(arguments):
    message = from_openai_chat(a_call(arguments))

    assert message.parts[0].tool_input == arguments
    assert round_trip(a_call(arguments)) == a_call(arguments)


@pytest.mark.parametrize(("given_role", "role"), [("developer", Role.SYSTEM), ("function", Role.TOOL)])
def test_roles_that_we_do_not_have_are_read_as_the_nearest_and_come_back(given_role, role):
    row = {"role": given_role, "content": "be brief", "name": "rules"}

    assert from_openai_chat(row).role is role
    assert round_trip(row) == row


def test_the_speakers_name_is_the_author():
    assert from_openai_chat({"role": "user", "name": "Ann", "content": "hello"}).author == "Ann"


def test_pictures_recordings_and_files_become_file_parts():
    row = {
        "role": "user",
        "content": [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "https://example.org/dog.png", "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_id": "file-1"}},
        ],
    }

    message = from_openai_chat(row)

    assert [part.part_type for part in message.parts] == [PartType.TEXT, PartType.FILE, PartType.FILE, PartType.FILE]
    assert message.parts[1].file_url == "https://example.org/dog.png"
    assert message.parts[2].file_mime == "audio/wav"
    assert message.parts[3].file_name == "a.pdf"
    assert round_trip(row) == row


def test_a_list_with_one_text_comes_back_as_a_list_without_being_kept_twice():
    row = {"role": "user", "content": [{"type": "text", "text": "look"}]}

    assert from_openai_chat(row).metadata == {}
    assert round_trip(row) == row


def test_a_refusal_is_what_was_said():
    row = {"role": "assistant", "content": None, "refusal": "I will not."}

    assert as_stored(from_openai_chat(row)).content == "I will not."
    assert round_trip(row) == row


def test_a_call_from_before_there_were_several_is_a_call():
    row = {"role": "assistant", "content": None, "function_call": {"name": "grep", "arguments": "{}"}}

    assert from_openai_chat(row).parts[0].tool_name == "grep"
    assert round_trip(row) == row


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"role": "robot", "content": "x"}, "role must be one of system, user, assistant, tool, developer, function"),
        ({"role": ["user"], "content": "x"}, "role must be one of"),
        ({"role": "user", "content": None}, "content must be given for the role user."),
        ({"role": "tool", "tool_call_id": "1"}, "content must be given for the role tool."),
        ({"role": "user", "content": {"text": "x"}}, "content must be a text or a list, not an object."),
        ({"role": "user", "content": ["x"]}, "content[0] must be an object, not a text."),
        ({"role": "user", "content": [{"type": "text"}]}, "content[0].text must be given."),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": "x"}]},
            "content[0].image_url must be an object, not a text.",
        ),
        ({"role": "user", "name": 5, "content": "x"}, "name must be a text, not a whole number."),
        ({"role": "assistant", "tool_calls": "x"}, "tool_calls must be a list, not a text."),
        ({"role": "assistant", "tool_calls": [5]}, "tool_calls[0] must be an object, not a whole number."),
        ({"role": "assistant", "tool_calls": [{"id": "1"}]}, "tool_calls[0].function must be given."),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
            "tool_calls[0].function.arguments must be a text, not an object.",
        ),
    ],
)
def test_a_malformed_row_is_refused_with_the_name_of_its_field(row, sentence):
    with pytest.raises(ValueError) as refusal:
        from_openai_chat(row)

    assert str(refusal.value).startswith(sentence)


def test_a_message_of_another_form_becomes_the_nearest_chat_message():
    parts = (
        NewPart(PartType.REASONING, text_content="hmm"),
        NewPart(PartType.TEXT, text_content="Let me look."),
        NewPart(PartType.PATCH, patch_files=("a.py",)),
        NewPart(PartType.TOOL, tool_call_id="1", tool_name="grep", tool_input={"q": "x"}),
    )

    row = to_openai_chat(as_stored(NewMessage(Role.ASSISTANT, parts=parts)))

    assert row == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Let me look."}, {"type": "text", "text": "[patch a.py]"}],
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "grep", "arguments": '{"q": "x"}'}}],
    }


def test_results_of_several_calls_are_more_than_one_chat_message():
    parts = tuple(NewPart(PartType.TOOL, tool_call_id=call, tool_output="x") for call in ("1", "2"))

    with pytest.raises(ValueError, match="results of several calls"):
        to_openai_chat(as_stored(NewMessage(Role.TOOL, parts=parts)))


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_arguments = st.text() | st.builds(
    lambda value, ascii, compact: json.dumps(value, ensure_ascii=ascii, separators=(",", ":") if compact else None),
    _json,
    st.booleans(),
    st.booleans(),
)
_odd = st.dictionaries(
    st.sampled_from(["audio", "index", "add", "openai_chat", "metadata", "refused"]), _plain_json, max_size=2
)
_maybe_text = st.none() | st.text()


def _objects(fields: dict[str, Any], optional: dict[str, Any] | None = None) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda odd, known: odd | known, _odd, st.fixed_dictionaries(fields, optional=optional or {}))


_items = st.one_of(
    _objects({"type": st.just("text"), "text": st.text()}),
    _objects({"type": st.just("refusal"), "refusal": st.text()}),
    _objects(
        {"type": st.just("image_url")},
        {"image_url": st.none() | _objects({}, {"url": _maybe_text, "detail": _maybe_text})},
    ),
    _objects(
        {"type": st.just("input_audio")}, {"input_audio": _objects({}, {"data": _maybe_text, "format": _maybe_text})}
    ),
    _objects({"type": st.just("file")}, {"file": _objects({}, {"filename": _maybe_text, "file_data": _maybe_text})}),
    _objects({}, {"type": st.sampled_from([None, "hologram", ""])}),
)
_calls = st.one_of(
    _objects(
        {"function": _objects({}, {"name": _maybe_text, "arguments": st.none() | _arguments})},
        {"id": _maybe_text, "type": st.just("function")},
    ),
    _objects({"type": st.just("custom"), "custom": _objects({}, {"name": _maybe_text, "input": _maybe_text})}),
)
_contents = st.text() | st.lists(_items, max_size=3)
_rows = st.one_of(
    _objects(
        {"role": st.just("assistant")},
        {
            "content": st.none() | _contents,
            "tool_calls": st.none() | st.lists(_calls, max_size=3),
            "refusal": _maybe_text,
            "function_call": st.none() | _objects({}, {"name": _maybe_text, "arguments": st.none() | _arguments}),
            "name": _maybe_text,
        },
    ),
    _objects({"role": st.sampled_from(["user", "system", "developer"]), "content": _contents}, {"name": _maybe_text}),
    _objects(
        {"role": st.sampled_from(["tool", "function"]), "content": _contents},
        {"name": _maybe_text, "tool_call_id": _maybe_text},
    ),
)


@given(_rows)
@example({"role": "user", "content": [{"type": "text", "text": "a"}]})
@example({"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]})
@example({"role": "user", "name": "n" * 501, "content": ""})
def test_any_row_comes_back_key_for_key(row):
    assert json.dumps(round_trip(row), sort_keys=True) == json.dumps(row, sort_keys=True)


@needs_data
def test_every_real_message_comes_back_key_for_key():
    with gzip.open(DATA / "originals" / "tau_bench__gpt-4o-airline.json.gz", "rt") as file:
        rows = [row for task in json.load(file) for row in task["traj"]]

    assert len(rows) > 1000
    for row in rows:
        assert round_trip(row) == row

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.formats.pi import from_pi, holds_message, is_line, session_of, to_pi
from conversations.types import NewPart, PartType, Role
from tests.conversations.records import as_stored

AT = "2026-01-31T12:00:00.046Z"
HEADER = {"type": "session", "id": "d703a1a9", "timestamp": AT, "cwd": "/"}


def said(**message: Any) -> dict[str, Any]:
    return {"type": "message", "timestamp": AT, "message": {**message, "timestamp": 1769860800046}}


def round_trip(line: dict[str, Any]) -> dict[str, Any]:
    return to_pi(as_stored(from_pi(line)))


@pytest.mark.parametrize("content", ["Read a.py.", [{"type": "text", "text": "Read a.py."}]])
def test_a_line_is_its_message_at_its_time(content):
    line = said(role="user", content=content)

    message = from_pi(line)

    assert (message.role, as_stored(message).content) == (Role.USER, "Read a.py.")
    assert message.created_at == datetime(2026, 1, 31, 12, 0, 0, 46_000, tzinfo=UTC)
    assert round_trip(line) == line


def test_an_answer_is_told_in_parts_with_all_that_is_noted_of_it():
    line = said(
        role="assistant",
        content=[
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "EqQB"},
            {"type": "text", "text": "I look."},
            {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a.py"}, "partialJson": "{"},
        ],
        usage={"input": 5, "cost": {"total": 0.5}},
        stopReason="toolUse",
    )

    parts = from_pi(line).parts

    assert [part.part_type for part in parts] == [PartType.REASONING, PartType.TEXT, PartType.TOOL]
    assert (parts[2].tool_call_id, parts[2].tool_name, parts[2].tool_input) == ("t1", "read", {"path": "a.py"})
    assert round_trip(line) == line


@pytest.mark.parametrize(("is_error", "column"), [(False, "tool_output"), (True, "tool_error")])
def test_a_result_lands_in_its_columns(is_error, column):
    line = said(role="toolResult", toolCallId="t1", toolName="read", isError=is_error, details={"lines": 3},
                content=[{"type": "text", "text": "def f"}])  # fmt: skip
    status = "error" if is_error else "completed"

    message = from_pi(line)

    assert message.role is Role.TOOL
    assert message.parts == (
        NewPart(PartType.TOOL, tool_call_id="t1", tool_name="read", tool_status=status, **{column: "def f"}),
    )
    assert round_trip(line) == line


def test_a_result_may_be_a_picture_or_nothing():
    picture = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}

    for content in ([picture], [], "plain"):
        line = said(role="toolResult", toolCallId="t1", toolName="shot", isError=False, content=content)
        assert from_pi(line).parts[0].tool_call_id == "t1"
        assert round_trip(line) == line


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (said(role="bashExecution", command="ls", output="a.py", exitCode=0), "ls\na.py"),
        (said(role="custom", customType="note", content="Mind the gap.", display=True), "Mind the gap."),
        ({"type": "custom_message", "timestamp": AT, "customType": "note", "content": "Mind the gap."},
         "Mind the gap."),
        ({"type": "branch_summary", "timestamp": AT, "fromId": "c0ffee", "summary": "It led nowhere."},
         "It led nowhere."),
    ],
)  # fmt: skip
def test_what_a_model_was_given_to_read_beside_what_was_said_is_a_users(line, text):
    message = from_pi(line)

    assert is_line(line) and holds_message(line)
    assert (message.role, message.content) == (Role.USER, text)
    assert round_trip(line) == line


def test_that_it_cut_its_own_context_is_kept_and_says_nothing():
    line = {"type": "compaction", "timestamp": AT, "summary": "So far: a.py.", "tokensBefore": 9000}

    message = from_pi(line)

    assert [(part.part_type, part.text_content) for part in message.parts] == [(PartType.COMPACTION, "So far: a.py.")]
    assert as_stored(message).content == ""
    assert round_trip(line) == line


def test_the_first_line_names_the_session():
    assert is_line(HEADER) and not holds_message(HEADER)
    assert (session_of(HEADER), session_of(said(role="user", content="x"))) == ("d703a1a9", "")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (said(role="user", content="x") | {"timestamp": "noon"}, "timestamp must be a time as ISO 8601 writes it"),
        (said(role=5, content="x"), "role must be a text, not a whole number."),
        (said(role="user", content=5), "content must be a text or a list, not a whole number."),
        (said(role="user", content=["x"]), "content[0] must be an object, not a text."),
        (said(role="assistant", content=[{"type": "toolCall", "id": 5}]), "content[0].id must be a text"),
        (said(role="toolResult", content="x", isError="no"), "isError must be true or false, not a text."),
    ],
)
def test_a_malformed_line_is_refused_with_the_name_of_its_field(line, sentence):
    with pytest.raises(ValueError) as refusal:
        from_pi(line)

    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    "row",
    [
        None,
        {"role": "user", "content": "x"},
        {"type": "message", "role": "user", "content": "x", "timestamp": AT},
        {"type": "message", "message": "x", "timestamp": AT},
        {"type": "message", "message": {"role": "user"}},
        {"type": "response_item", "timestamp": AT, "payload": {}},
        {"type": ["session"], "timestamp": AT},
    ],
)
def test_lines_of_others_are_none(row):
    assert not is_line(row)


numbers = st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
values = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | numbers
blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "toolCall", "image", "other"])},
    optional={"text": st.text(max_size=5), "thinking": st.text(max_size=5), "id": st.text(max_size=5),
              "arguments": values, "data": st.text(max_size=5), "mimeType": st.text(max_size=5), "other": values},
)  # fmt: skip
lines = st.builds(
    lambda message, more: {"type": "message", "timestamp": AT, "message": message, **more},
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "toolResult", "bashExecution", "other"])},
        optional={"content": st.text(max_size=5) | st.lists(blocks, max_size=3), "toolCallId": st.text(max_size=5),
                  "toolName": st.text(max_size=5), "isError": st.booleans(), "command": st.text(max_size=5),
                  "usage": values},
    ),
    st.fixed_dictionaries({}, optional={"id": st.text(max_size=5), "parentId": values}),
)  # fmt: skip


@given(lines)
def test_whatever_is_read_comes_back(line):
    try:
        message = from_pi(line)
    except ValueError:
        return

    assert json.dumps(to_pi(as_stored(message)), sort_keys=True) == json.dumps(line, sort_keys=True)

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from conversations.formats.claude_code import (
    from_claude_code,
    is_line,
    session_of,
    to_claude_code,
)
from conversations.types import Role
from tests.conversations.records import as_stored

LINE = {
    "parentUuid": None,
    "isSidechain": False,
    "sessionId": "7acd37a8",
    "type": "user",
    "message": {"role": "user", "content": "Read a.py."},
    "uuid": "c0ffee",
    "timestamp": "2026-01-31T12:00:00.046Z",
}


def round_trip(line: dict[str, Any]) -> dict[str, Any]:
    return to_claude_code(as_stored(from_claude_code(line)))


def test_a_line_is_its_message_at_its_time():
    message = from_claude_code(LINE)

    assert (message.role, message.content) == (Role.USER, "Read a.py.")
    assert message.created_at == datetime(2026, 1, 31, 12, 0, 0, 46_000, tzinfo=UTC)
    assert round_trip(LINE) == LINE


@pytest.mark.parametrize("timestamp", [None, "2026-01-31T12:00:00", "2026-01-31T13:00:00+01:00"])
def test_a_time_comes_back_as_it_was_written(timestamp):
    line = LINE | {"timestamp": timestamp}

    assert round_trip(line) == line


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"timestamp": "noon"}, "timestamp must be a time as ISO 8601 writes it"),
        ({"timestamp": "0001-01-01T00:00:00+10:00"}, "timestamp must be a time as ISO 8601 writes it"),
        ({"timestamp": 5}, "timestamp must be a text, not a whole number."),
        ({"message": {"role": "user", "content": 5}}, "content must be a text or a list"),
    ],
)
def test_a_malformed_line_is_refused_with_the_name_of_its_field(changed, sentence):
    with pytest.raises(ValueError) as refusal:
        from_claude_code(LINE | changed)

    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    ("row", "session"),
    [
        (LINE, "7acd37a8"),
        (LINE | {"isSidechain": True, "agentId": "a28"}, "7acd37a8:a28"),
        (LINE | {"isSidechain": True}, "7acd37a8:sidechain"),
        ({"type": "summary", "summary": "A release", "leafUuid": "af93"}, ""),
    ],
)
def test_what_an_agent_was_sent_to_do_is_a_session_of_its_own(row, session):
    assert is_line(row)
    assert session_of(row) == session


@pytest.mark.parametrize(
    "row",
    [
        None,
        {"role": "user", "content": "x"},
        {"type": "message", "role": "user", "content": "x", "sessionId": "s1", "messageId": "m1"},
        {"type": "response_item", "timestamp": "2026-01-31T12:00:00Z", "payload": {}},
        {"messages": [], "sessionId": "x"},
    ],
)
def test_lines_of_others_are_none(row):
    assert not is_line(row)

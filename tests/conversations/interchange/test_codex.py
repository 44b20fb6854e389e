from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from conversations.formats.codex import from_codex, holds_message, is_line, session_of, to_codex
from conversations.types import PartType, Role
from tests.conversations.records import as_stored

LINE = {
    "timestamp": "2026-01-31T12:00:00.046Z",
    "type": "response_item",
    "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Read a.py."}]},
}
META = {"timestamp": "2026-01-31T12:00:00.000Z", "type": "session_meta", "payload": {"id": "01997e76", "cwd": "/"}}
COMPACTED = {"timestamp": "2026-01-31T12:30:00.000Z", "type": "compacted", "payload": {"message": "So far: a.py."}}


def round_trip(line: dict[str, Any]) -> dict[str, Any]:
    return to_codex(as_stored(from_codex(line)))


def test_a_line_is_its_item_at_its_time():
    message = from_codex(LINE)

    assert (message.role, as_stored(message).content) == (Role.USER, "Read a.py.")
    assert message.created_at == datetime(2026, 1, 31, 12, 0, 0, 46_000, tzinfo=UTC)
    assert round_trip(LINE) == LINE


@pytest.mark.parametrize("timestamp", [None, "2026-01-31T12:00:00", "2026-01-31T13:00:00+01:00"])
def test_a_time_comes_back_as_it_was_written(timestamp):
    line = LINE | {"timestamp": timestamp}

    assert round_trip(line) == line


def test_that_it_cut_its_own_context_is_kept_and_says_nothing():
    message = from_codex(COMPACTED)

    assert holds_message(COMPACTED)
    assert [(part.part_type, part.text_content) for part in message.parts] == [(PartType.COMPACTION, "So far: a.py.")]
    assert as_stored(message).content == ""
    assert round_trip(COMPACTED) == COMPACTED
    more = COMPACTED | {"payload": {"message": "So far: a.py.", "replacement_history": [LINE["payload"]]}}
    assert round_trip(more) == more


@pytest.mark.parametrize(
    ("output", "printed", "error"),
    [
        ('{"output":"a.py\\nb.py\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}', "a.py\nb.py\n", None),
        ('{"output": "a.py", "metadata": {"exit_code": 0}}', "a.py", None),
        ('{"output":"no such file","metadata":{"exit_code":1}}', None, "no such file"),
        ('{"output":"a.py"}', "a.py", None),
        ('{"output":"a.py","metadata":null}', "a.py", None),
        ("failed in sandbox", "failed in sandbox", None),
        ('{ "output": "a.py" }', '{ "output": "a.py" }', None),
        ('{"metadata":{},"output":"a.py"}', '{"metadata":{},"output":"a.py"}', None),
        ('{"output":5}', '{"output":5}', None),
        ('["output"]', '["output"]', None),
        ("{}", "{}", None),
    ],
)
def test_what_a_command_printed_is_taken_out_of_its_wrapping_and_put_back(output, printed, error):
    line = LINE | {"payload": {"type": "function_call_output", "call_id": "c", "output": output}}

    [part] = from_codex(line).parts

    assert (part.tool_output, part.tool_error) == (printed, error)
    assert part.tool_status == ("error" if error else "completed")
    assert round_trip(line) == line


def test_the_first_line_names_the_session():
    assert is_line(META) and not holds_message(META)
    assert (session_of(META), session_of(LINE)) == ("01997e76", "")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"timestamp": "noon"}, "timestamp must be a time as ISO 8601 writes it"),
        ({"payload": {"type": "message", "role": "user"}}, "content must be a text or a list, not null."),
        ({"type": "compacted", "payload": {"message": 5}}, "payload.message must be a text, not a whole number."),
    ],
)
def test_a_malformed_line_is_refused_with_the_name_of_its_field(changed, sentence):
    with pytest.raises(ValueError) as refusal:
        from_codex(LINE | changed)

    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    "row",
    [
        None,
        {"role": "user", "content": "x"},
        {"type": "message", "role": "user", "content": "x", "payload": {}, "timestamp": "x"},
        {"type": "user", "message": {"role": "user", "content": "x"}, "sessionId": "s1"},
        {"type": "response_item", "timestamp": "2026-01-31T12:00:00Z", "payload": "x"},
    ],
)
def test_lines_of_others_are_none(row):
    assert not is_line(row)

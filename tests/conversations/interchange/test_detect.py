from __future__ import annotations

import pytest

from conversations.formats import READERS, Format, detect
from conversations.types import Role


@pytest.mark.parametrize(
    ("row", "format"),
    [
        ({"role": "user", "content": "x", "parts": []}, Format.NEUTRAL),
        ({"role": "user", "content": "x", "seq": 0}, Format.NEUTRAL),
        ({"role": "assistant", "tool_calls": []}, Format.OPENAI_CHAT),
        ({"role": "developer", "content": "x"}, Format.OPENAI_CHAT),
        ({"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url"}]}, Format.OPENAI_CHAT),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}, Format.ANTHROPIC),
        ({"role": "assistant", "content": [{"type": "thinking"}, {"type": "text", "text": "x"}]}, Format.ANTHROPIC),
        ({"role": "user", "content": [{"type": "text", "text": "x"}]}, None),
        ({"role": "user", "content": [5, {"type": ["image"]}]}, None),
        ({"role": ["user"], "content": "x"}, None),
    ],
)
def test_a_message_tells_the_format_unless_it_is_the_same_in_all(row, format):
    assert detect(row) is format


def test_a_message_that_all_formats_know_is_the_same_in_all():
    row = {"role": "user", "content": "x"}

    messages = [reader(row) for reader in READERS.values()]

    assert all((message.role, message.content, message.parts) == (Role.USER, "x", ()) for message in messages)


@pytest.mark.parametrize("row", [None, 5, "role", [], {}, {"messages": []}])
def test_anything_else_is_no_message(row):
    with pytest.raises(ValueError, match="not a message"):
        detect(row)

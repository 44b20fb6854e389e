"""Prompts that were sent while Claude Code worked are messages, although their lines have another form."""

from __future__ import annotations

import pytest

from conversations.models import Message
from tests.importing import host_files as files

pytestmark = pytest.mark.django_db

CALL = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "count"}}]
RESULT = [{"type": "tool_result", "tool_use_id": "t1", "content": "41"}]


def queued(id: str, parent: str, text: str, **more: object) -> dict[str, object]:
    attached = {"type": "queued_command", "prompt": [{"type": "text", "text": text}], "commandMode": "prompt"}
    return files.claude_code_line(id, parent, None, "attachment", attachment=attached | more)


SESSION = [
    files.claude_code_line("u1", None, "Count the boats."),
    files.claude_code_line("a1", "u1", CALL, "assistant"),
    files.claude_code_line("r1", "a1", RESULT),
    queued("q1", "r1", "Note the green buoy, too."),
    files.claude_code_line("a2", "q1", "41, and the buoy is green.", "assistant"),
]
AFTER = [
    files.claude_code_line("u2", "a2", "Thanks."),
    queued("q2", "u2", "And the red one?"),
    files.claude_code_line("a3", "q2", "It is red.", "assistant"),
]


def stored() -> list[str]:
    return [text for text in Message.objects.order_by("seq").values_list("content", flat=True) if "[" not in text]


def test_they_are_stored_in_their_place_and_once(imported):
    for lines in (SESSION, SESSION, SESSION + AFTER):
        imported("cc-2.jsonl", files.lines_of(lines))

    assert stored() == [
        "Count the boats.", "41", "Note the green buoy, too.", "41, and the buoy is green.",
        "Thanks.", "And the red one?", "It is red.",
    ]  # fmt: skip


def test_a_session_that_an_earlier_version_imported_without_them_goes_on(imported):
    # As such a version read it.
    unread = queued("q1", "r1", "Note the green buoy, too.", type="unknown")
    imported("cc-2.jsonl", files.lines_of([*SESSION[:3], unread, SESSION[4]]))

    for lines in (SESSION, SESSION + AFTER):
        imported("cc-2.jsonl", files.lines_of(lines))

    assert "Note the green buoy, too." not in stored()
    assert stored()[-3:] == ["Thanks.", "And the red one?", "It is red."]

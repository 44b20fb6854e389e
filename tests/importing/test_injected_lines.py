"""Files with lines that LCM injected, such as a recall: these are not stored, and the file can still grow."""

from __future__ import annotations

import pytest

from conversations.models import Message
from conversations.store.injected import wrapped
from tests.importing import host_files as files

pytestmark = pytest.mark.django_db

RECALL = "They met before."


def of_codex(role: str, text: str) -> dict[str, object]:
    kind = "output_text" if role == "assistant" else "input_text"
    item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return {"timestamp": files.ISO, "type": "response_item", "payload": item}


def of_claude_code(role: str, text: str) -> dict[str, object]:
    return files.claude_code_line(f"{role} {text[:9]}", None, text, role)


def of_pi(role: str, text: str) -> dict[str, object]:
    return files.pi_line(f"{role} {text[:9]}", None, role, text)


def neutral(role: str, text: str) -> dict[str, object]:
    return {"role": role, "content": text, "session_id": "a"}


# By the file's name: its first line, how a message is written, and the role of the injected text.
FORMATS = {
    "rollout-1.jsonl": (files.CODEX[:1], of_codex, "developer"),
    "cc-2.jsonl": ([], of_claude_code, "user"),
    "pi-1.jsonl": (files.PI[:1], of_pi, "user"),
    "a.jsonl": ([], neutral, "user"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_grows_behind_a_line_that_lcm_injected(imported, name):
    head, line_of, role = FORMATS[name]
    first = [*head, line_of("user", "one"), line_of(role, wrapped(RECALL)), line_of("assistant", "two")]
    grown = [*first, line_of(role, wrapped(f"{RECALL} Again.")), line_of("user", "three")]

    created = [
        sum(each["created"] for each in imported(name, files.lines_of(lines))["conversations"])
        for lines in (first, first, grown, [*grown, line_of("assistant", "four")])
    ]

    assert created == [2, 0, 1, 1]
    stored = [content.strip('"\n ') for content in Message.objects.order_by("seq").values_list("content", flat=True)]
    assert stored == ["one", "two", "three", "four"]

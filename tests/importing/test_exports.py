"""`lcm export`: what came in a format goes out the same, and any conversation goes out in every format."""

from __future__ import annotations

import json
import uuid

import pytest

from conversations.models import Conversation, Message
from integrity.retention.erasure import Erasures
from tests.importing import host_files as files
from tests.integrity.erasing import erased
from tests.lcmsite.callers import lcm

pytestmark = pytest.mark.django_db

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Which port?"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "PORT = 5433"},
    {"role": "assistant", "content": "It is 5433."},
]  # fmt: skip
ANTHROPIC = [
    {"role": "user", "content": "Which port?"},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "Look.", "signature": "EqQB"},
                                      {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a.py"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "PORT = 5433"}]},
]  # fmt: skip
ROWS = {"openai": CHAT, "anthropic": ANTHROPIC, "claude-code": files.CLAUDE_CODE}


@pytest.fixture
def stored(imported):
    """Imports bytes as a file of this name; the session."""
    return lambda *given: imported(*given)["conversations"][0]["session_id"]


def exported(session_id, format):
    found = lcm("export", session_id, "--format", format)
    assert found.exit_code == 0, found.err
    return found.out


def rows_of(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("format", ROWS)
def test_what_came_in_a_format_goes_out_the_same(stored, format):
    session_id = stored("history.jsonl", files.lines_of(ROWS[format]))

    assert rows_of(exported(session_id, format)) == ROWS[format]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", ["OpenCode", "Gemini CLI", "pi", "Claude.ai", "SWE-agent"])
@pytest.mark.parametrize("format", ["openai", "anthropic", "claude-code"])
def test_the_session_of_any_program_is_exported_and_read_again(stored, program, format):
    text = exported(stored(*files.FILES[program]), format)
    Conversation.objects.update(session_id="the original")

    again = stored("again.jsonl", text.encode())

    shown = "\n".join(Message.objects.filter(conversation__session_id=again).values_list("content", flat=True))
    assert "Which port?" in shown and "5433" in shown and "5432" not in shown
    assert rows_of(exported(again, format)) == rows_of(text)


def test_a_transcript_for_claude_code_is_one_chain_of_valid_lines(stored):
    lines = rows_of(exported(stored(*files.FILES["OpenCode"]), "claude-code"))

    assert [line["parentUuid"] for line in lines] == [None, *(line["uuid"] for line in lines[:-1])]
    assert {line["cwd"] for line in lines} == {"/home/ada/boats"}
    assert all(uuid.UUID(line["sessionId"]) and line["type"] == line["message"]["role"] for line in lines)
    blocks = [block["type"] for line in lines for block in line["message"]["content"] if isinstance(block, dict)]
    assert blocks.count("tool_use") == blocks.count("tool_result") == 1


def test_markdown_has_every_text_in_order(stored):
    text = exported(stored(*files.FILES["Claude.ai"]), "markdown")

    assert text.startswith("# Ports\n")
    places = [text.index(each) for each in ("## User", "Which port?", "## Assistant", "It is 5433.")]
    assert places == sorted(places)


def test_markdown_names_an_erased_message_in_one_line(stored):
    session_id = stored(*files.FILES["OpenCode"])
    before = exported(session_id, "markdown").split("\n## ")
    [conversation] = Conversation.objects.filter(session_id=session_id)
    erased(Erasures.from_settings(), conversation.pk, from_seq=2, to_seq=conversation.next_seq - 1)

    after = exported(session_id, "markdown").split("\n## ")

    assert after[:2] == before[:2] and len(after) == len(before) > 2
    assert all(each.splitlines()[1:] == ["", "[erased]"] for each in after[2:])

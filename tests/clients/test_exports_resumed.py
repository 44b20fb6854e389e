"""What LCM exports for Claude Code, Claude Code itself resumes: its model gets what was said before."""

from __future__ import annotations

import json
import re

import pytest

from conversations.types import NewMessage, Role
from tests.clients.programs import Person, claude_environment
from tests.clients.vendor import Answer, Vendor
from tests.conversations.real_data import DATA, needs_data
from tests.factories import a_conversation, a_tool_call, a_tool_result, say
from tests.lcmsite.callers import lcm

pytestmark = [pytest.mark.django_db, pytest.mark.thorough, pytest.mark.timeout(300)]


def resumed(person, session_id):
    """What the model of Claude Code gets when it resumes an exported conversation."""
    found = lcm("export", session_id, "--format", "claude-code")
    assert found.exit_code == 0, found.err
    name = json.loads(found.out.splitlines()[-1])["sessionId"]
    folder = person.home / ".claude" / "projects" / re.sub("[^A-Za-z0-9]", "-", str(person.project.resolve()))
    folder.mkdir(parents=True)
    (folder / f"{name}.jsonl").write_text(found.out)
    with Vendor(Answer("Going on.")) as vendor:
        ran = person.runs(
            "claude", "-p", "And now?", "--resume", name, "--output-format", "json", **claude_environment(vendor.url)
        )
        assert "Going on." in ran.stdout, ran.stdout + ran.stderr
        return vendor.turns[0].json["messages"]


def test_a_conversation_of_any_origin_is_resumed_with_its_calls_and_results(tmp_path):
    record = a_conversation("Which port has the harbour's database?", session_id="harbour")
    say(
        record.conversation_id,
        a_tool_call("toolu_1", path="ports.md"),
        a_tool_result("toolu_1", "PORT = 5433"),
        NewMessage(role=Role.ASSISTANT, content="It is 5433."),
    )

    messages = resumed(Person(tmp_path), "harbour")

    text = json.dumps(messages)
    places = [text.index(each) for each in ("Which port", "ports.md", "PORT = 5433", "It is 5433.", "And now?")]
    assert places == sorted(places)
    blocks = [block for row in messages for block in row["content"] if isinstance(block, dict)]
    assert [block["type"] for block in blocks if "tool" in block["type"]] == ["tool_use", "tool_result"]


@needs_data
@pytest.mark.parametrize(
    "begin", ["claude_code_ccl__07f2e15c", "claude_code_ccl__7acd37a8", "codex_agentcmd__rollout-2025-09-25"]
)
def test_a_real_session_is_resumed_with_what_was_said(tmp_path, begin):
    [path] = (DATA / "originals").glob(f"{begin}*")
    imported = lcm("--json", "import", str(path)).json["conversations"][0]
    exported = lcm("export", str(imported["conversation_id"]), "--format", "anthropic").out
    said = [block["text"] for row in map(json.loads, exported.splitlines()) for block in blocks_of(row)]

    messages = resumed(Person(tmp_path), str(imported["conversation_id"]))

    text = json.dumps(messages)
    newest = [json.dumps(each.strip())[1:-1] for each in said if each.strip()][-10:]
    assert newest and all(each in text for each in newest)


def blocks_of(row):
    content = row["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [block for block in blocks if block.get("type") == "text" and row["role"] in ("user", "assistant")]

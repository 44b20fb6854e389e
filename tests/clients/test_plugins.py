"""pi and OpenCode themselves, connected with `lcm connect`, headless, with a scripted model.

What is said is in LCM, the model gets LCM's context, and without LCM the program works as ever.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from compaction.engine import CompactionEngine
from conversations.models import Conversation
from conversations.store.conversations import ConversationStore
from tests.clients.live_opencode_and_pi import models_of_pi, settings_of_opencode
from tests.clients.programs import Person, agent_program
from tests.clients.vendor import Answer, ToolCall, Vendor
from tests.factories import a_workspace
from tests.lcmsite.agents import serving
from tests.lcmsite.callers import lcm

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]

LONG = "The weather was fine and warm. " * 200


@dataclass(frozen=True)
class Program:
    """How a program is told of the model, and run."""

    name: str
    settings: str
    settings_with: Callable[..., dict[str, Any]]
    first: tuple[str, ...]
    more: tuple[str, ...]
    shell: ToolCall
    grep: str
    environment: dict[str, str]


OF_PI = ("--provider", "fake", "--model", "fake", "-p")
PROGRAMS = (
    Program(
        "pi",
        ".pi/agent/models.json",
        models_of_pi,
        OF_PI,
        ("--continue", *OF_PI),
        ToolCall("bash", {"command": "echo PORT is 5433"}),
        "lcm_grep",
        {},
    ),
    Program(
        "opencode",
        ".config/opencode/opencode.json",
        settings_of_opencode,
        ("run",),
        ("run", "--continue"),
        ToolCall("bash", {"command": "echo PORT is 5433", "description": "the port"}),
        "lcm_lcm_grep",
        {"OPENCODE_DISABLE_MODELS_FETCH": "1"},
    ),
)


def messages_of(name):
    """What LCM has of the one session of a program, by role and text."""
    conversation = Conversation.objects.get(session_id__startswith=f"{name}:")
    rows = conversation.messages.order_by("seq").values_list("role", "content")
    return [(role, content.strip('"\n ')) for role, content in rows]


def texts_in(request):
    return json.dumps(request.json["messages"])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_session_is_recorded_assembled_and_survives_lcm(program, served_lcm, tmp_path, monkeypatch):
    agent_program(program.name)
    monkeypatch.setenv("HOME", str(tmp_path))
    person = Person(tmp_path)
    workspace = a_workspace()

    def says(text, **environment):
        arguments = program.more if vendor.turns else program.first
        ran = person.runs(program.name, *arguments, text, **program.environment, **environment)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    with Vendor() as vendor, serving(tmp_path / "agents") as mcp_url:
        person.writes(program.settings, program.settings_with(f"{vendor.url}/v1", window=100_000))
        before = (tmp_path / program.settings).read_bytes()
        connected = lcm("connect", program.name, "--yes", "--url", served_lcm.url, "--mcp-url", mcp_url)
        assert connected.exit_code == 0, connected.err

        vendor.answers(Answer(calls=(program.shell,)), Answer("It is 5433."))
        says(f"Which port? {LONG}")
        asked, called, *rest = messages_of(program.name)
        assert asked == ("user", f"Which port? {LONG}".strip())
        assert called[0] == "assistant" and "echo PORT is 5433" in called[1]
        assert rest == [("tool", "PORT is 5433"), ("assistant", "It is 5433.")]

        # LCM's tools find what was said.
        vendor.answers(Answer(calls=(ToolCall(program.grep, {"query": "PORT"}),)), Answer("Found."))
        says("Look for it.")
        assert "msg_" in texts_in(vendor.turns[-1])

        # What is summarized is summarized for the program's model, and the newest is whole.
        record = Conversation.objects.get(session_id__startswith=f"{program.name}:")
        store = ConversationStore.from_settings()
        store.configure_conversation(conversation_id=record.pk, overrides={"fresh_tail_count": 1})
        assert CompactionEngine.from_settings().compact(conversation_id=record.pk).leaf_summaries
        vendor.answers(Answer("Still 5433."))
        says("And now?", LCM_CONTEXT_TOKENS="4000")
        assert "<summary id=" in texts_in(vendor.turns[-1]) and LONG not in texts_in(vendor.turns[-1])
        assert "And now?" in texts_in(vendor.turns[-1])

        # Without LCM the program works, with its own context; afterwards nothing is missing.
        served_lcm.stop()
        vendor.answers(Answer("Alone."))
        assert "Alone." in says("Are you there?")
        assert LONG.strip() in texts_in(vendor.turns[-1])
        served_lcm.start()
        vendor.answers(Answer("Together."))
        says("And again?")

    expected = ["And now?", "Still 5433.", "Are you there?", "Alone.", "And again?", "Together."]
    assert [content for _, content in messages_of(program.name)][-6:] == expected
    assert Conversation.objects.filter(workspace=workspace).count() == 1

    [health] = lcm("--json", "doctor", program.name).json["items"]
    assert health["connected"] and health["last_event"] and not health["advice"], health
    assert lcm("disconnect", program.name, "--yes").exit_code == 0
    assert (tmp_path / program.settings).read_bytes() == before
    assert not list(tmp_path.glob(".pi/agent/extensions/*")) + list(tmp_path.glob(".config/opencode/plugin/*"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_session_in_a_small_window_is_summarized_before_anything_is_cut(program, served_lcm, tmp_path, monkeypatch):
    agent_program(program.name)
    monkeypatch.setenv("HOME", str(tmp_path))
    person = Person(tmp_path)
    a_workspace()
    command = {**program.shell.arguments, "command": "seq -f 'The harbour log has line %g' 1 1000"}
    read = Answer(calls=(ToolCall(program.shell.name, command),))

    with Vendor() as vendor, serving(tmp_path / "agents") as mcp_url:
        person.writes(program.settings, program.settings_with(f"{vendor.url}/v1", window=60_000))
        connected = lcm("connect", program.name, "--yes", "--url", served_lcm.url, "--mcp-url", mcp_url)
        assert connected.exit_code == 0, connected.err
        for number in range(5):
            vendor.answers(read, read, Answer(f"Read {number}."))
            arguments = program.more if number else program.first
            ran = person.runs(program.name, *arguments, f"Read {number}", **program.environment)
            assert ran.returncode == 0, ran.stdout + ran.stderr

    # Nothing was cut without a summary, and the program never compacted.
    assert len(messages_of(program.name)) == 30
    assert len(vendor.turns) == 15
    texts = [texts_in(request) for request in vendor.turns]
    assert "<summary id=" in texts[-1] and "Read 4" in texts[-1]
    assert all("<summary id=" in text for text in texts if "are not shown" in text)
    assert all(len(request.body) / 4 < 56_000 for request in vendor.turns)

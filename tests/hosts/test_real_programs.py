"""Claude Code and Codex themselves, against a scripted vendor: connected, used, compacted, disconnected."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.clients.programs import Person, agent_program, claude_environment, own_environment
from tests.clients.vendor import Answer, Request, ToolCall, Vendor
from tests.flows.processes import wait_until
from tests.hosts.site_of_hosts import HostSite, a_site

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

# As where LCM is installed for everybody: plugins look for it on PATH.
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
OWN_SETTINGS = '{\n  "cleanupPeriodDays": 99\n}\n'
ROUNDS = 12


@pytest.fixture(scope="module")
def site() -> Iterator[HostSite]:
    with a_site() as site:
        yield site


def at_work(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command, "description": "Look"})


def claude(home: Path, vendor: Vendor, *words: str) -> dict[str, object]:
    """One headless session, or one more turn of it; its result."""
    return claude_events(home, vendor, *words)[-1]


def claude_events(home: Path, vendor: Vendor, *words: str, **settings: str) -> list[dict[str, Any]]:
    """All events of it, from what it has found at its start to its result."""
    output = ("--verbose", "--output-format", "stream-json", "--allowedTools", "Bash,Task,mcp__lcm__lcm_grep")
    variables = claude_environment(vendor.url) | {"PATH": PATH, **settings}
    ran = Person(home).runs("claude", "-p", *words, *output, **variables)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_claude_code_is_recorded_recalls_after_its_compaction_and_is_let_go(site, tmp_path):
    agent_program("claude")
    settings = tmp_path / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text(OWN_SETTINGS)
    site.connect(tmp_path, "claude-code")
    looks = [
        Answer(f"Look {n}.", calls=(at_work(f"for i in $(seq 60); do echo harbour {n} port $((5000 + i)); done"),))
        for n in range(ROUNDS)
    ]
    agent = ToolCall("Task", {"description": "Ask", "prompt": "Ask the pilot.", "subagent_type": "general-purpose"})

    def says(request: Request) -> Answer:
        """The sub-agent may work while its session goes on."""
        return Answer("It is 5433, says the pilot." if b"Look 0." in request.body else "The pilot says 5433.")

    def summarized(_: Request) -> Answer:
        """Answer once the session is flushed: a real model takes longer than the flush."""
        found = site.api.get(f"conversations/find/?session_id={session}")["conversation_id"]
        boundaries = f"conversations/{found}/boundaries/"
        # Without a boundary, the test fails below.
        with suppress(AssertionError):
            wait_until(lambda: site.api.get(boundaries)["items"], seconds=120, what="the session is flushed")
        return Answer("<summary>They talked about a port.</summary>")

    with Vendor(*looks, Answer(calls=(agent,)), says) as vendor:
        session = str(claude(tmp_path, vendor, "Which port has the harbour?")["session_id"])
        site.wait_for(session, "Which port has the harbour?", "It is 5433, says the pilot.", "harbour 11 port 5060")

        vendor.answers(summarized)
        claude(tmp_path, vendor, "/compact", "--continue")
        search = ToolCall("mcp__lcm__lcm_grep", {"query": "pilot 5433"})
        vendor.answers(Answer(calls=(search,)), Answer("The pilot said 5433."))
        before = len(vendor.turns)
        claude(tmp_path, vendor, "Who said which port?", "--continue")
        asked, answered = (request.body.decode() for request in vendor.turns[before:])

    assert "lcm_injected mark=" in asked and "sum_" in asked
    found = site.api.get(f"conversations/find/?session_id={session}")["conversation_id"]
    [boundary] = site.api.get(f"conversations/{found}/boundaries/")["items"]
    coverage = site.api.post(f"conversations/{found}/coverage/", {"host_reference": boundary["host_reference"]})
    assert coverage["is_complete"] and coverage["summarized"] >= boundary["last_seq"] - 1
    found = json.dumps(json.loads(answered)["messages"][-1])
    assert "It is 5433, says the pilot." in found
    site.wait_for(session, "Who said which port?", "The pilot said 5433.")
    assert "lcm_injected" not in site.text_of(session)
    texts = [message["content"] for message in site.messages(session)]
    assert all(sum(f"Look {n}." in text for text in texts) == 1 for n in range(ROUNDS))
    # The last one: what follows it is the compaction and what was asked after it.
    assert texts[boundary["last_seq"] - 1] == "It is 5433, says the pilot." not in texts[boundary["last_seq"] :]
    children = [each for each in site.sessions() if each["session_id"].startswith(f"{session}:")]
    assert len(children) == 1 and "The pilot says 5433." in site.text_of(children[0]["session_id"])

    health = json.loads(site.lcm(tmp_path, "--json", "doctor", "claude-code").stdout)["items"][0]
    assert health["connected"] and health["lcm_answers"] and health["last_event"] and health["last_import"]
    assert site.lcm(tmp_path, "disconnect", "claude-code", "--yes").returncode == 0
    assert settings.read_text() == OWN_SETTINGS
    assert "lcm" not in json.loads((tmp_path / ".claude.json").read_text()).get("mcpServers", {})


def test_without_lcm_claude_code_notices_nothing_and_the_spool_is_replayed(site, tmp_path):
    agent_program("claude")
    # Where nothing listens.
    site.connect(tmp_path, "claude-code", "--url", "http://127.0.0.1:9")

    with Vendor(Answer("It is 5433.")) as vendor:
        result = claude(tmp_path, vendor, "Which port?")
    session = str(result["session_id"])
    stored = site.messages(session)
    replayed = site.lcm(tmp_path, "--json", "hook", "replay")

    assert result["result"] == "It is 5433." and stored == []
    assert json.loads(replayed.stdout)["waiting"] == 0
    assert [message["content"] for message in site.messages(session)] == ["Which port?", "It is 5433."]


def test_the_plugin_of_claude_code_records_as_well_and_brings_tools_commands_and_a_skill(site, tmp_path):
    program = agent_program("claude")
    plugins = Path(__file__).parents[2] / "clients/plugins"
    assert site.lcm(tmp_path, "connect", "claude-code", "--yes", "--plugin").returncode == 0
    environ = own_environment(tmp_path, PATH=PATH)
    for words in (["marketplace", "add", str(plugins)], ["install", "lcm@lcm"]):
        subprocess.run([program, "plugin", *words], env=environ, check=True, capture_output=True, timeout=120)

    with Vendor(Answer("It is 5433.")) as vendor:
        events = claude_events(tmp_path, vendor, "Which port?", **site.settings)
        site.wait_for(events[-1]["session_id"], "Which port?", "It is 5433.")
    # It waits for servers, as a session does not.
    environ |= {"MCP_TIMEOUT": "60000", **site.settings}
    listed = subprocess.run([program, "mcp", "list"], env=environ, capture_output=True, text=True, timeout=120).stdout

    [found] = [each for each in events if each.get("subtype") == "init"]
    assert [each["name"] for each in found["mcp_servers"]] == ["plugin:lcm:lcm"]
    assert re.search("plugin:lcm:lcm: lcm mcp - .*Connected", listed), listed
    assert {"lcm:find", "lcm:status"} <= set(found["slash_commands"]) and "lcm:lcm-lookup" in found["skills"]


def codex(home: Path, *words: str) -> None:
    freely = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust")
    ran = Person(home).runs("codex", "exec", *freely, *words, FAKE_KEY="x")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_codex_is_recorded_and_is_let_go(site, tmp_path):
    agent_program("codex")
    config = tmp_path / ".codex/config.toml"
    config.parent.mkdir()
    call = ToolCall("exec_command", {"cmd": "echo harbour port 5433"})
    with Vendor(Answer("I look.", calls=(call,)), Answer("It is 5433.")) as vendor:
        own = (
            f'# mine\nmodel = "fake"\nmodel_provider = "vendor"\n[model_providers.vendor]\nname = "vendor"\n'
            f'base_url = "{vendor.url}/v1"\nenv_key = "FAKE_KEY"\nwire_api = "responses"\n'
        )
        config.write_text(own)
        site.connect(tmp_path, "codex")

        codex(tmp_path, "Which port has the harbour?")
        tools = json.dumps(vendor.turns[0].json["tools"])

        # The id stands at the end of the name.
        sessions = tmp_path / ".codex/sessions"
        [first] = sessions.rglob("rollout-*.jsonl")
        site.wait_for(first.stem[-36:], "Which port has the harbour?", "harbour port 5433", "It is 5433.")
        recall = f"recall/?project={Person(tmp_path).project}&budget=1000&share=1"
        wait_until(lambda: "5433" in site.api.get(recall)["text"], seconds=60, what="the session has its summary")

        # A session that begins with a recall is recorded on.
        vendor.answers(Answer("Begun."))
        codex(tmp_path, "Begin.")
        [second] = (path.stem[-36:] for path in sessions.rglob("rollout-*.jsonl") if path != first)
        site.wait_for(second, "Begun.")
        codex(tmp_path, "resume", second, "Go on.")
    assert "lcm_injected" in vendor.turns[-1].body.decode()
    site.wait_for(second, "Begin.", "Go on.")
    assert "lcm_grep" in tools
    assert site.lcm(tmp_path, "disconnect", "codex", "--yes").returncode == 0
    assert config.read_text() == own
    assert not (tmp_path / ".codex/hooks.json").exists()

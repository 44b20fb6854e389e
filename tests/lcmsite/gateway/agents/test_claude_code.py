"""Claude Code itself through the gateway, forty turns: every word of the wire is in LCM once, on its branch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.gateway.recording.exchange_journal import SIDE
from lcmsite.gateway.surfaces import Surface
from tests.clients.forty_turns import Hands, ScriptedModel, forty_turns, subagents
from tests.clients.live_programs import ClaudeCode
from tests.clients.vendor import ToolCall
from tests.lcmsite.gateway.agents.conftest import Lcm
from tests.lcmsite.gateway.agents.taking_turns import check_turns_in_record, check_turns_in_small_window

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

TOOLS = "Bash,Read,Edit,Write,Agent"
GREP = "mcp__lcm__lcm_grep"
# All of LCM's tools would fill half of a window of 16,000 tokens.
OTHERS = ",".join(f"mcp__lcm__{each.tool}" for each in CATALOGUE if each.tool != "lcm_grep")
# In a smaller one the long result alone, which it estimates before it sends it, has it compact.
OWN_WINDOW = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "190000"}


def hands_in(project: Path) -> Hands:
    return Hands(
        shell=lambda command: ToolCall("Bash", {"command": command, "description": "Run"}),
        writes=lambda name, text: ToolCall("Write", {"file_path": str(project / name), "content": text}),
        reads=lambda name: ToolCall("Read", {"file_path": str(project / name)}),
        delegates=lambda prompt: ToolCall(
            "Agent", {"description": "Ask", "prompt": prompt, "subagent_type": "general-purpose"}
        ),
        recalls=lambda words: ToolCall(GREP, {"query": words}),
    )


def claude_code(lcm: Lcm, home: Path, **headers: str) -> ClaudeCode:
    sent = {"x-lcm-api-key": lcm.key, **{name.replace("_", "-"): value for name, value in headers.items()}}
    bearer = {"Authorization": f"Bearer {lcm.key}"}
    servers = {"mcpServers": {"lcm": {"type": "http", "url": lcm.mcp_url, "headers": bearer}}}
    home.joinpath("mcp.json").write_text(json.dumps(servers))
    return ClaudeCode(
        home,
        lcm.before.url,
        (
            *("--tools", TOOLS, "--allowedTools", f"{TOOLS},{GREP}"),
            *("--strict-mcp-config", "--mcp-config", str(home / "mcp.json"), "--disallowedTools", OTHERS),
        ),
        {
            "ANTHROPIC_CUSTOM_HEADERS": "\n".join(f"{name}: {value}" for name, value in sent.items()),
            "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS": "200000",
            "ENABLE_TOOL_SEARCH": "false",
            **(OWN_WINDOW if headers else {}),
        },
    )


def test_what_goes_over_the_wire_is_in_lcm_once_and_on_its_branch(lcm, tmp_path):
    hands = hands_in(tmp_path / "project")
    model = ScriptedModel(forty_turns(hands), subagents(hands))
    agent = claude_code(lcm, tmp_path)
    # Titles and suggestions are requests beside the conversation.
    agent.is_quiet, agent.options = False, (*agent.options, "--prompt-suggestions", "true")

    main = check_turns_in_record(lcm, Surface.MESSAGES, agent, model)

    assert main.session_id == f"gateway/{agent.session}" and len(model.agents) == 2
    kinds = {json.loads(entry.entry)["type"] for entry in main.journal_entries.filter(subpath=SIDE)}
    # It suggests only while nobody asks.
    assert {"title"} <= kinds <= {"title", "suggestion"}


def test_in_a_small_window_it_goes_on_for_forty_turns_and_finds_what_was_left_out(lcm, tmp_path):
    hands = hands_in(tmp_path / "project")
    model = ScriptedModel(forty_turns(hands), subagents(hands))

    check_turns_in_small_window(lcm, Surface.MESSAGES, claude_code(lcm, tmp_path, x_lcm_mode="assemble"), model)

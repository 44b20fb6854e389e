"""OpenCode and pi themselves through the gateway, forty turns each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lcmsite.gateway.surfaces import Surface
from tests.clients.forty_turns import Hands, ScriptedModel, forty_turns, subagents
from tests.clients.live_opencode_and_pi import OpenCode, Pi
from tests.clients.vendor import ToolCall
from tests.lcmsite.gateway.agents.conftest import Lcm
from tests.lcmsite.gateway.agents.taking_turns import check_turns_in_record, check_turns_in_small_window

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

Agent = OpenCode | Pi
GREP = "lcm_grep"
# All of LCM's tools would fill half of a window of 16,000 tokens.
ALLOWED = {"*": "allow", "lcm_*": "deny", f"lcm_{GREP}": "allow"}
# Each would compact by itself long before the last turn.
OWN_WINDOW = 60_000


def hands_of(agent: Agent) -> Hands:
    if isinstance(agent, Pi):
        return Hands(
            shell=lambda command: ToolCall("bash", {"command": command}),
            writes=lambda name, text: ToolCall("write", {"path": name, "content": text}),
            reads=lambda name: ToolCall("read_all", {"name": name}),
            recalls=lambda words: ToolCall(GREP, {"query": words}),
        )
    project = agent.home / "project"
    return Hands(
        shell=lambda command: ToolCall("bash", {"command": command, "description": "Run"}),
        writes=lambda name, text: ToolCall("write", {"filePath": str(project / name), "content": text}),
        reads=lambda name: ToolCall("bash", {"command": f"cat {name}", "description": "Read"}),
        delegates=lambda prompt: ToolCall("task", {"description": "Ask", "prompt": prompt, "subagent_type": "general"}),
        recalls=lambda words: ToolCall(f"lcm_{GREP}", {"query": words}),
    )


def opencode(lcm: Lcm, home: Path, **headers: str) -> OpenCode:
    bearer = {"Authorization": f"Bearer {lcm.key}"}
    tools = {"mcp": {"lcm": {"type": "remote", "url": lcm.mcp_url, "headers": bearer}}, "permission": ALLOWED}
    return OpenCode(home, f"{lcm.before.url}/v1", {"x-lcm-api-key": lcm.key, **headers}, tools)


def pi(lcm: Lcm, home: Path, **headers: str) -> Pi:
    url, own = f"{lcm.before.url}/v1", {"x-lcm-api-key": lcm.key, **headers}
    return Pi(home, url, own, {"LCM_MCP_URL": lcm.mcp_url, "LCM_TOKEN": lcm.key})


@pytest.mark.parametrize("program", [opencode, pi])
def test_what_goes_over_the_wire_is_in_lcm_once_and_on_its_branch(
    program: Callable[..., Agent], lcm: Lcm, tmp_path: Path
) -> None:
    agent = program(lcm, tmp_path)
    hands = hands_of(agent)

    check_turns_in_record(lcm, Surface.CHAT, agent, ScriptedModel(forty_turns(hands), subagents(hands)))


@pytest.mark.parametrize("program", [opencode, pi])
def test_in_a_small_window_it_goes_on_for_forty_turns_and_finds_what_was_left_out(
    program: Callable[..., Agent], lcm: Lcm, tmp_path: Path
) -> None:
    agent = program(lcm, tmp_path, **{"x-lcm-mode": "assemble"})
    agent.window = OWN_WINDOW
    hands = hands_of(agent)

    check_turns_in_small_window(lcm, Surface.CHAT, agent, ScriptedModel(forty_turns(hands), subagents(hands)))

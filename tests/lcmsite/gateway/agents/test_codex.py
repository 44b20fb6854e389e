"""Codex itself through the gateway, forty turns: every word of the wire is in LCM once, on its branch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lcmsite.gateway.surfaces import Surface
from tests.clients.forty_turns import Hands, ScriptedModel, forty_turns, subagents
from tests.clients.live_programs import Codex
from tests.clients.vendor import Request, ToolCall
from tests.lcmsite.gateway.agents.conftest import Lcm
from tests.lcmsite.gateway.agents.taking_turns import check_turns_in_record, check_turns_in_small_window

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

LONGEST_RESULT = 200_000
AGENTS = "multi_agent_v1"
# The whole history fills it.
OWN_WINDOW = "model_context_window = 120000\nmodel_auto_compact_token_limit = 100000"


def shell(command: str) -> ToolCall:
    return ToolCall("exec_command", {"cmd": command, "max_output_tokens": LONGEST_RESULT})


def patch(name: str, text: str) -> ToolCall:
    added = "".join(f"+{line}\n" for line in text.splitlines())
    return shell(f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {name}\n{added}*** End Patch\nEOF")


def wait_for_agent(request: Request, number: int) -> ToolCall:
    ids = list(dict.fromkeys(re.findall(r"agent_id\W+([0-9a-f-]{36})", request.body.decode())))
    return ToolCall("wait_agent", {"targets": [ids[number]], "timeout_ms": 60_000}, namespace=AGENTS)


HANDS = Hands(
    shell=shell,
    writes=patch,
    reads=lambda name: shell(f"cat {name}"),
    delegates=lambda prompt: ToolCall("spawn_agent", {"message": prompt}, namespace=AGENTS),
    awaits=wait_for_agent,
    recalls=lambda words: ToolCall("lcm_grep", {"query": words}, namespace="mcp__lcm"),
)


def codex(lcm: Lcm, home: Path, **headers: str) -> Codex:
    sent = {"x-lcm-api-key": lcm.key, **{name.replace("_", "-"): value for name, value in headers.items()}}
    written = ", ".join(f'"{name}" = "{value}"' for name, value in sent.items())
    server = f'url = "{lcm.mcp_url}"\nbearer_token_env_var = "LCM_KEY"\nenabled_tools = ["lcm_grep"]'
    return Codex(
        home,
        lcm.before.url,
        f"tool_output_token_limit = {LONGEST_RESULT}\n{OWN_WINDOW if headers else ''}",
        f"http_headers = {{ {written} }}\n[mcp_servers.lcm]\n{server}",
        {"LCM_KEY": lcm.key},
    )


def test_what_goes_over_the_wire_is_in_lcm_once_and_on_its_branch(lcm, tmp_path):
    model = ScriptedModel(forty_turns(HANDS), subagents(HANDS))
    agent = codex(lcm, tmp_path)

    main = check_turns_in_record(lcm, Surface.RESPONSES, agent, model)

    assert main.session_id == f"gateway/{agent.session}" and len(model.agents) == 2


def test_in_a_small_window_it_goes_on_for_forty_turns_and_finds_what_was_left_out(lcm, tmp_path):
    model = ScriptedModel(forty_turns(HANDS), subagents(HANDS))

    check_turns_in_small_window(lcm, Surface.RESPONSES, codex(lcm, tmp_path, x_lcm_mode="assemble"), model)

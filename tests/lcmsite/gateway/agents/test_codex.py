"""Codex itself through the gateway, forty turns: every word of the wire is in LCM once, on its branch."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from conversations.models import Conversation
from lcmsite.gateway.surfaces import Surface
from tests.clients.forty_turns import (
    FACT,
    LONG_BYTES,
    Act,
    Hands,
    ScriptedModel,
    Turn,
    forty_turns,
    newest_result,
    subagents,
)
from tests.clients.live_programs import Codex
from tests.clients.vendor import Request, ToolCall, Vendor
from tests.lcmsite.gateway.agents.conftest import Lcm, check_assembled, check_record, check_stored

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

LONGEST_RESULT = 200_000
AGENTS = "multi_agent_v1"
# It would compact by itself long before the last turn.
OWN_WINDOW = "model_context_window = 120000\nmodel_auto_compact_token_limit = 100000"


def shell(command: str) -> ToolCall:
    return ToolCall("exec_command", {"cmd": command, "max_output_tokens": LONGEST_RESULT})


def patch(name: str, text: str) -> ToolCall:
    added = "".join(f"+{line}\n" for line in text.splitlines())
    return shell(f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {name}\n{added}*** End Patch\nEOF")


def wait_for_agents(request: Request) -> ToolCall:
    ids = re.findall(r"agent_id\W+([0-9a-f-]{36})", request.body.decode())
    return ToolCall("wait_agent", {"targets": ids, "timeout_ms": 20_000}, namespace=AGENTS)


HANDS = Hands(
    shell=shell,
    writes=patch,
    reads=lambda name: shell(f"cat {name}"),
    delegates=lambda prompt: ToolCall("spawn_agent", {"message": prompt}, namespace=AGENTS),
    awaits=wait_for_agents,
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


def takes(agent: Codex, turn: Turn) -> str:
    """One turn, as its act has it; the program's last words."""
    match turn.act:
        case Act.RESTART:
            agent.restart()
        case Act.REWIND:
            agent.take_back()
        case Act.INTERRUPT:
            agent.begin(turn.prompt)
            time.sleep(2)
            agent.interrupt()
            return agent.finish()
    return agent.say(turn.prompt)


def test_what_goes_over_the_wire_is_in_lcm_once_and_on_its_branch(lcm, tmp_path):
    model = ScriptedModel(forty_turns(HANDS), subagents(HANDS))
    agent = codex(lcm, tmp_path)
    with Vendor(model) as vendor:
        lcm.behind.aim(vendor.url)
        agent.start()
        for turn in model.turns:
            last = takes(agent, turn)
            assert last == turn.done or turn.name in ("13", "39"), (turn, last)
        agent.end()
    lcm.settle()

    assert last == "Module 40 is written; its tests pass." and not model.unknown
    assert max(len(each.body) for each in vendor.turns) > LONG_BYTES
    check_record(lcm, Surface.RESPONSES, model)
    main = Conversation.objects.get(workspace_id=lcm.workspace_id, session_id=f"gateway/{agent.session}")
    assert main.is_active(main.next_seq - 1)
    children = Conversation.objects.filter(workspace_id=lcm.workspace_id).exclude(pk=main.pk)
    assert [child.parent_id for child in children] == [main.pk, main.pk]


def test_in_a_small_window_it_goes_on_for_forty_turns_and_finds_what_was_left_out(lcm, tmp_path):
    model = ScriptedModel(forty_turns(HANDS), subagents(HANDS))
    agent = codex(lcm, tmp_path, x_lcm_mode="assemble")
    with Vendor(model) as vendor:
        lcm.behind.aim(vendor.url)
        agent.start()
        answers = {turn.name: takes(agent, turn) for turn in model.turns}
        agent.end()
    lcm.settle()

    asked = [request for request, _ in model.answered if "[turn 39]" in request.body.decode()]
    assert answers["39"] == "It is 4711.", newest_result(asked[1])
    assert not model.unknown
    done = {turn.name: turn.done for turn in model.turns}
    assert {name for name in done if answers[name] != done[name]} == {"13", "39"}
    assert 1 <= check_assembled(lcm, Surface.RESPONSES) <= 40
    assert FACT not in asked[0].body.decode()
    # It has sent its whole history to the end: it has not compacted.
    assert "[turn 3]" in lcm.asked[-1].body.decode()
    check_stored(lcm, Surface.RESPONSES, model)

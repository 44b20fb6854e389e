"""Codex itself through the gateway, forty turns: every word of the wire is in LCM once, on its branch."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from conversations.models import Conversation
from lcmsite.gateway.surfaces import Surface
from tests.clients.forty_turns import LONG_BYTES, Act, Hands, ScriptedModel, Turn, forty_turns, subagents
from tests.clients.live_programs import Codex
from tests.clients.vendor import Request, ToolCall, Vendor
from tests.lcmsite.gateway.agents.conftest import Lcm, check_record

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

LONGEST_RESULT = 200_000
AGENTS = "multi_agent_v1"


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
)


def codex(lcm: Lcm, home: Path, **headers: str) -> Codex:
    sent = {"x-lcm-api-key": lcm.key, **{name.replace("_", "-"): value for name, value in headers.items()}}
    written = ", ".join(f'"{name}" = "{value}"' for name, value in sent.items())
    return Codex(home, lcm.before.url, f"tool_output_token_limit = {LONGEST_RESULT}", f"http_headers = {{ {written} }}")


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

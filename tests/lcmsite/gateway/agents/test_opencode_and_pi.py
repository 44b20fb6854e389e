"""OpenCode and pi themselves through the gateway, forty turns each."""

from __future__ import annotations

import time
from collections.abc import Callable
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
    rows_of,
    subagents,
)
from tests.clients.live_opencode_and_pi import OpenCode, Pi
from tests.clients.vendor import ToolCall, Vendor
from tests.clients.wire_and_store import chains_of
from tests.lcmsite.gateway.agents.conftest import Lcm, check_assembled, check_record, check_stored

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


def takes(agent: Agent, turn: Turn) -> str:
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


@pytest.mark.parametrize("program", [opencode, pi])
def test_what_goes_over_the_wire_is_in_lcm_once_and_on_its_branch(
    program: Callable[..., Agent], lcm: Lcm, tmp_path: Path
) -> None:
    agent = program(lcm, tmp_path)
    hands = hands_of(agent)
    model = ScriptedModel(forty_turns(hands), subagents(hands))
    with Vendor(model) as vendor:
        lcm.behind.aim(vendor.url)
        agent.start()
        try:
            for turn in model.turns:
                last = takes(agent, turn)
                assert last == turn.done or turn.name in ("13", "39"), (turn.name, last)
        finally:
            agent.end()
    lcm.settle()

    assert last == "Module 40 is written; its tests pass." and not model.unknown
    assert max(len(each.body) for each in vendor.turns) > LONG_BYTES
    kept = check_record(lcm, Surface.CHAT, model)
    # Where the program is, LCM is.
    rows = [row for row in rows_of(model.answered[-1][0].json) if row["role"] != "system"]
    [*_, newest] = chains_of(rows, broken=kept.broken)
    [number] = [each.conversation for each in kept.messages if each.chain == newest.chain]
    main = Conversation.objects.get(pk=number)
    assert main.is_active(main.next_seq - 1)
    children = Conversation.objects.filter(workspace_id=lcm.workspace_id).exclude(pk=main.pk)
    assert [child.parent_id for child in children] == [main.pk] * len(model.agents)


@pytest.mark.parametrize("program", [opencode, pi])
def test_in_a_small_window_it_goes_on_for_forty_turns_and_finds_what_was_left_out(
    program: Callable[..., Agent], lcm: Lcm, tmp_path: Path
) -> None:
    agent = program(lcm, tmp_path, **{"x-lcm-mode": "assemble"})
    agent.window = OWN_WINDOW
    hands = hands_of(agent)
    model = ScriptedModel(forty_turns(hands), subagents(hands))
    with Vendor(model) as vendor:
        lcm.behind.aim(vendor.url)
        agent.start()
        try:
            answers = {turn.name: takes(agent, turn) for turn in model.turns}
        finally:
            agent.end()
    lcm.settle()

    asked = [request for request, _ in model.answered if "[turn 39]" in request.body.decode()]
    assert answers["39"] == "It is 4711.", newest_result(asked[1])
    assert not model.unknown
    done = {turn.name: turn.done for turn in model.turns}
    assert {name for name in done if answers[name] != done[name]} == {"13", "39"}
    assert 1 <= check_assembled(lcm, Surface.CHAT) <= 40
    assert FACT not in asked[0].body.decode()
    # It has sent its whole history to the end: it has not compacted.
    assert "[turn 3]" in lcm.asked[-1].body.decode()
    check_stored(lcm, Surface.CHAT, model)

"""Claude Code itself through the gateway, forty turns: every word of the wire is in LCM once, on its branch."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from conversations.models import Conversation
from lcmsite.gateway.surfaces import Surface
from tests.clients.forty_turns import LONG_BYTES, Act, Hands, ScriptedModel, Turn, forty_turns, subagents
from tests.clients.live_programs import ClaudeCode
from tests.clients.vendor import ToolCall, Vendor
from tests.clients.wire_and_store import chains_of, rows_of
from tests.lcmsite.gateway.agents.conftest import Lcm, check_record

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

TOOLS = "Bash,Read,Edit,Write,Agent"


def hands_in(project: Path) -> Hands:
    return Hands(
        shell=lambda command: ToolCall("Bash", {"command": command, "description": "Run"}),
        writes=lambda name, text: ToolCall("Write", {"file_path": str(project / name), "content": text}),
        reads=lambda name: ToolCall("Read", {"file_path": str(project / name)}),
        delegates=lambda prompt: ToolCall(
            "Agent", {"description": "Ask", "prompt": prompt, "subagent_type": "general-purpose"}
        ),
    )


def claude_code(lcm: Lcm, home: Path, *options: str, **headers: str) -> ClaudeCode:
    sent = {"x-lcm-api-key": lcm.key, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return ClaudeCode(
        home,
        lcm.before.url,
        ("--tools", TOOLS, "--allowedTools", TOOLS, *options),
        {
            "ANTHROPIC_CUSTOM_HEADERS": "\n".join(f"{name}: {value}" for name, value in sent.items()),
            "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS": "200000",
        },
    )


def takes(agent: ClaudeCode, turn: Turn) -> str:
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
    hands = hands_in(tmp_path / "project")
    model = ScriptedModel(forty_turns(hands), subagents(hands))
    agent = claude_code(lcm, tmp_path)
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
    kept = check_record(lcm, Surface.MESSAGES, model)
    # Where the program is, LCM is.
    main = Conversation.objects.get(workspace_id=lcm.workspace_id, session_id=f"gateway/{agent.session}")
    [*_, newest] = chains_of(rows_of(vendor.turns[-1].json))
    assert kept.conversations[newest.chain] == main.pk
    assert main.is_active(main.next_seq - 1) and main.moves == 1
    children = Conversation.objects.filter(workspace_id=lcm.workspace_id).exclude(pk=main.pk)
    assert [child.parent_id for child in children] == [main.pk, main.pk]

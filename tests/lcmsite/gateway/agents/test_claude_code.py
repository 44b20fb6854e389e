"""Claude Code itself through the gateway, forty turns: every word of the wire is in LCM once, on its branch."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from conversations.models import Conversation
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.gateway.recording.exchange_journal import SIDE
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
from tests.clients.live_programs import ClaudeCode
from tests.clients.vendor import ToolCall, Vendor
from tests.clients.wire_and_store import chains_of, rows_of
from tests.lcmsite.gateway.agents.conftest import Lcm, check_assembled, check_record, check_stored

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

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
    # Titles and suggestions are requests beside the conversation.
    agent.is_quiet, agent.options = False, (*agent.options, "--prompt-suggestions", "true")
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
    [*_, newest] = chains_of(rows_of(model.answered[-1][0].json), broken=kept.broken)
    assert [each.conversation for each in kept.messages if each.chain == newest.chain] == [main.pk]
    assert main.is_active(main.next_seq - 1)
    children = Conversation.objects.filter(workspace_id=lcm.workspace_id).exclude(pk=main.pk)
    assert [child.parent_id for child in children] == [main.pk, main.pk]
    kinds = {json.loads(entry.entry)["type"] for entry in main.journal_entries.filter(subpath=SIDE)}
    # It suggests only while nobody asks.
    assert {"title"} <= kinds <= {"title", "suggestion"}


def test_in_a_small_window_it_goes_on_for_forty_turns_and_finds_what_was_left_out(lcm, tmp_path):
    hands = hands_in(tmp_path / "project")
    model = ScriptedModel(forty_turns(hands), subagents(hands))
    agent = claude_code(lcm, tmp_path, x_lcm_mode="assemble")
    with Vendor(model) as vendor:
        lcm.behind.aim(vendor.url)
        agent.start()
        answers = {turn.name: takes(agent, turn) for turn in model.turns}
        agent.end()
    lcm.settle()

    asked = [request for request, _ in model.answered if "[turn 39]" in request.body.decode()]
    assert answers["39"] == "It is 4711.", newest_result(asked[1])
    assert model.unknown == []
    done = {turn.name: turn.done for turn in model.turns}
    assert {name for name in done if answers[name] != done[name]} == {"13", "39"}
    assert 1 <= check_assembled(lcm, Surface.MESSAGES) <= 40
    assert FACT not in asked[0].body.decode()
    # It has sent its whole history to the end: it has not compacted.
    assert "[turn 3]" in lcm.asked[-1].body.decode()
    check_stored(lcm, Surface.MESSAGES, model)

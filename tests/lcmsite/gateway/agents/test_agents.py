"""Agent programs themselves through the gateway, forty turns each: every word of the wire is in LCM once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conversations.models import Conversation
from lcmsite.gateway.recording.exchange_journal import SIDE
from tests.clients.forty_turns import FACT, LONG_BYTES, ScriptedModel, forty_turns, newest_result, subagents
from tests.clients.live_programs import ClaudeCode
from tests.clients.wire_and_store import expected
from tests.lcmsite.gateway.agents.conftest import Lcm, check_assembled, check_record, check_stored
from tests.lcmsite.gateway.agents.hosts import HOSTS
from tests.lcmsite.gateway.agents.taking_turns import take_all

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

every_host = pytest.mark.parametrize("host", HOSTS)


def model_for(host: str, home: Path) -> ScriptedModel:
    hands = HOSTS[host].hands(home)
    return ScriptedModel(forty_turns(hands), subagents(hands))


@every_host
def test_what_goes_over_the_wire_is_in_lcm_once_and_on_its_branch(host: str, lcm: Lcm, tmp_path: Path) -> None:
    model, agent = model_for(host, tmp_path), HOSTS[host].agent(lcm, tmp_path)
    if isinstance(agent, ClaudeCode):
        # Titles and suggestions are requests beside the conversation.
        agent.is_quiet, agent.options = False, (*agent.options, "--prompt-suggestions", "true")

    words = take_all(lcm, agent, model)

    assert words["40"] == "Module 40 is written; its tests pass."
    assert max(len(each.body) for each in lcm.behind.passed) > LONG_BYTES
    kept = check_record(lcm, HOSTS[host].surface, model)
    # Where the program is, LCM is.
    [*_, newest] = expected(HOSTS[host].surface, model.answered[-1:], broken=kept.broken)
    [number] = [each.conversation for each in kept.messages if each.chain == newest]
    main = Conversation.objects.get(pk=number)
    assert main.is_active(main.next_seq - 1)
    children = Conversation.objects.filter(workspace_id=lcm.workspace_id).exclude(pk=main.pk)
    assert [child.parent_id for child in children] == [main.pk] * len(model.agents)
    if host in ("claude", "codex"):
        assert main.session_id == f"gateway/{agent.session}" and len(model.agents) == 2
    if host == "claude":
        kinds = {json.loads(entry.entry)["type"] for entry in main.journal_entries.filter(subpath=SIDE)}
        # It suggests only while nobody asks.
        assert {"title"} <= kinds <= {"title", "suggestion"}


@every_host
def test_in_a_small_window_it_goes_on_for_forty_turns_and_finds_what_was_left_out(
    host: str, lcm: Lcm, tmp_path: Path
) -> None:
    model, agent = model_for(host, tmp_path), HOSTS[host].agent(lcm, tmp_path, is_assembled=True)

    words = take_all(lcm, agent, model)

    asked = [request for request, _ in model.answered if "[turn 39]" in request.body.decode()]
    assert words["39"] == "It is 4711.", newest_result(asked[1])
    assert 1 <= check_assembled(lcm, HOSTS[host].surface) <= 30
    assert FACT not in asked[0].body.decode()
    # It has sent its whole history to the end: it has not compacted.
    assert "[turn 3]" in lcm.asked[-1].body.decode()
    check_stored(lcm, HOSTS[host].surface, model)

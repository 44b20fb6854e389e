"""OpenCode and pi with LCM's plugin, where a session is not one line: undone, compacted, with subagents."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conversations.models import Conversation
from tests.clients.conftest import ServedLcm
from tests.clients.live_opencode_and_pi import OpenCode, Pi
from tests.clients.programs import agent_program
from tests.clients.vendor import Answer, ToolCall, Vendor
from tests.factories import a_workspace
from tests.lcmsite.callers import an_api_key, lcm
from tests.lcmsite.operating import eventually

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

Agent = OpenCode | Pi
NAMES = {OpenCode: "opencode", Pi: "pi"}


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    with Vendor(Answer("Yes.")) as vendor:
        yield vendor


@pytest.fixture
def agent(
    request: pytest.FixtureRequest,
    served_lcm: ServedLcm,
    vendor: Vendor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Agent]:
    """The program, connected with `lcm connect`."""
    program: Callable[..., Agent] = request.param
    agent_program(NAMES[request.param])
    monkeypatch.setenv("HOME", str(tmp_path))
    a_workspace()
    connected = lcm("connect", NAMES[request.param], "--yes", "--url", served_lcm.url)
    assert connected.exit_code == 0, connected.err
    agent = program(tmp_path, f"{vendor.url}/v1")
    try:
        agent.start()
        yield agent
    finally:
        agent.end()


def of_agents(*programs: type[Agent]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("agent", programs, indirect=True, ids=NAMES.get)


def main() -> Conversation:
    return Conversation.objects.get(parent=None)


def prompts(*, active: bool) -> list[str]:
    """What was asked, on the branch where the session goes on, or beside it."""
    rows = main().messages.filter(role="user").order_by("seq")
    return [row.content.strip('"\n ') for row in rows if main().is_active(row.seq) == active]


@of_agents(OpenCode, Pi)
def test_what_was_undone_stays_beside_the_branch_after_a_restart(agent: Agent, served_lcm: ServedLcm) -> None:
    agent.say("Paint it.")
    agent.say("Paint it blue.")
    agent.take_back()
    served_lcm.stop()
    agent.say("Paint it green.")
    agent.end()
    served_lcm.start()
    agent.start()
    agent.say("Is it green?")

    assert prompts(active=True) == ["Paint it.", "Paint it green.", "Is it green?"]
    assert prompts(active=False) == ["Paint it blue."]


def test_a_turn_whose_answer_was_lost_is_on_the_path_of_the_next(served_lcm: ServedLcm) -> None:
    own = {"LCM_BASE_URL": served_lcm.url, "LCM_TOKEN": an_api_key()}

    subprocess.run(["node", Path(__file__).with_name("lost_answer.mjs")], env=os.environ | own, check=True, timeout=60)

    assert prompts(active=True) == ["one", "three", "four"]


@of_agents(OpenCode, Pi)
def test_a_compaction_of_the_program_is_made_and_hides_nothing_from_lcm(agent: Agent, vendor: Vendor) -> None:
    asked = [f"Step {number}. {'The weather was fine and warm. ' * 2000}".strip() for number in range(3)]
    for text in asked:
        agent.say(text)

    if isinstance(agent, Pi):
        assert agent.ask("compact")["summary"]
    else:
        # In the middle of a turn, as the window is full.
        look = ToolCall("bash", {"command": "pwd", "description": "Look"})
        vendor.answers(Answer(calls=(look,), input_tokens=250_000), Answer("Yes."))
        asked.append("Look around.")
        agent.say(asked[-1])
        assert any("compaction" in str(message) for message in agent.ask("GET", f"session/{agent.session}/message"))
    agent.say("And now?")

    if isinstance(agent, OpenCode):
        # What it has cut does not come back: it would compact again.
        assert asked[0] not in vendor.turns[-1].body.decode()
    kept = [text for text in prompts(active=True) if text in (*asked, "And now?")]
    assert kept == [*asked, "And now?"]


@of_agents(OpenCode)
def test_a_subagent_is_a_child(agent: Agent, vendor: Vendor) -> None:
    task = ToolCall("task", {"description": "Ask", "prompt": "Ask the pilot.", "subagent_type": "general"})
    vendor.answers(Answer(calls=(task,)), Answer("It is 5433."), Answer("The pilot says 5433."))

    agent.say("Which port?")

    [child] = Conversation.objects.exclude(parent=None)
    assert child.parent == main()
    # Its answer is recorded when its session is idle, which nobody waits for.
    texts = child.messages.order_by("seq").values_list("content", flat=True)
    eventually(lambda: list(texts.all()) == ["Ask the pilot.", "It is 5433."])

"""Take a real agent through its turns: alike for each program."""

from __future__ import annotations

from tests.clients.forty_turns import Act, ScriptedModel, Turn
from tests.clients.live_programs import LiveAgent
from tests.clients.vendor import Vendor
from tests.flows.processes import wait_until
from tests.lcmsite.gateway.agents.conftest import Lcm

# What these end with, the script does not say: one is interrupted, the other says what it has found.
UNWRITTEN = {"13", "39"}


def take(lcm: Lcm, agent: LiveAgent, turn: Turn) -> str:
    """One turn, as its act has it; the program's last words."""
    match turn.act:
        case Act.RESTART:
            agent.restart()
        case Act.REWIND:
            agent.take_back()
        case Act.INTERRUPT:
            begin_and_hear(lcm, agent, turn, b"Sentence 3")
            agent.interrupt()
            return agent.finish()
    return agent.say(turn.prompt)


def begin_and_hear(lcm: Lcm, agent: LiveAgent, turn: Turn, words: bytes) -> None:
    """Begin a turn, and wait until these words of its answer have passed."""
    before = len(lcm.asked)
    agent.begin(turn.prompt)
    wait_until(
        lambda: any(words in each.answer for each in lcm.asked[before:]),
        seconds=60,
        what=f"turn {turn.name} is answered",
    )


def take_all(lcm: Lcm, agent: LiveAgent, model: ScriptedModel) -> dict[str, str]:
    """All turns of the model; the program's last words in each, which are those of the script."""
    words: dict[str, str] = {}
    with Vendor(model) as vendor:
        lcm.behind.aim(vendor.url)
        agent.start()
        try:
            for turn in model.turns:
                words[turn.name] = take(lcm, agent, turn)
                assert (words[turn.name] != turn.done) == (turn.name in UNWRITTEN), (turn.name, words[turn.name])
        finally:
            agent.end()
    lcm.settle()
    assert model.unknown == []
    return words

"""Take a real agent through its turns, and check what LCM has of them: alike for each program."""

from __future__ import annotations

from conversations.models import Conversation
from lcmsite.gateway.surfaces import Surface
from tests.clients.forty_turns import FACT, LONG_BYTES, Act, ScriptedModel, Turn, newest_result
from tests.clients.live_programs import LiveAgent
from tests.clients.vendor import Vendor
from tests.clients.wire_and_store import expected
from tests.flows.processes import wait_until
from tests.lcmsite.gateway.agents.conftest import Lcm, check_assembled, check_record, check_stored

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


def check_turns_in_record(lcm: Lcm, surface: Surface, agent: LiveAgent, model: ScriptedModel) -> Conversation:
    """Forty turns are in LCM, once each and on their branch; the conversation in which they are."""
    words = take_all(lcm, agent, model)

    assert words["40"] == "Module 40 is written; its tests pass."
    assert max(len(each.body) for each in lcm.behind.passed) > LONG_BYTES
    kept = check_record(lcm, surface, model)
    # Where the program is, LCM is.
    [*_, newest] = expected(surface, model.answered[-1:], broken=kept.broken)
    [number] = [each.conversation for each in kept.messages if each.chain == newest]
    main = Conversation.objects.get(pk=number)
    assert main.is_active(main.next_seq - 1)
    children = Conversation.objects.filter(workspace_id=lcm.workspace_id).exclude(pk=main.pk)
    assert [child.parent_id for child in children] == [main.pk] * len(model.agents)
    return main


def check_turns_in_small_window(lcm: Lcm, surface: Surface, agent: LiveAgent, model: ScriptedModel) -> None:
    """Forty turns fit into a window that holds a few of them, and what was left out of it is found."""
    words = take_all(lcm, agent, model)

    asked = [request for request, _ in model.answered if "[turn 39]" in request.body.decode()]
    assert words["39"] == "It is 4711.", newest_result(asked[1])
    assert 1 <= check_assembled(lcm, surface) <= 30
    assert FACT not in asked[0].body.decode()
    # It has sent its whole history to the end: it has not compacted.
    assert "[turn 3]" in lcm.asked[-1].body.decode()
    check_stored(lcm, surface, model)

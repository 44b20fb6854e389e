"""Real agents go on while LCM is killed, its database away and its disk full; afterwards nothing is missing."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.answers import Answer
from tests.clients.forty_turns import ScriptedModel, Turn, forty_turns
from tests.clients.live_programs import LiveAgent
from tests.clients.vendor import Vendor
from tests.lcmsite.gateway.agents.conftest import Lcm, check_record
from tests.lcmsite.gateway.agents.hosts import HOSTS
from tests.lcmsite.gateway.agents.taking_turns import begin_and_hear, take

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

SECONDS_AWAY = 30
# A file cannot grow beyond this: as on a full disk.
MOST_BYTES = 4096
SLOWLY = Answer("".join(f"Sentence {each} of an answer. " for each in range(40)), pause=0.05)


@pytest.mark.parametrize("host", HOSTS)
def test_an_agent_goes_on_through_a_kill_an_outage_and_a_full_disk(lcm, tmp_path, host):
    agent, hands = HOSTS[host].agent(lcm, tmp_path), HOSTS[host].hands(tmp_path)
    turns = {turn.name: turn for turn in forty_turns(hands)}
    turns["slowly"] = Turn("slowly", "Tell me slowly.", (SLOWLY,))
    model = ScriptedModel(list(turns.values()))

    def go_on(*names: str) -> None:
        for name in names:
            assert take(lcm, agent, turns[name]) == turns[name].done, name

    with Vendor(model) as vendor, ExitStack() as at_end:
        lcm.behind.aim(vendor.url)
        at_end.callback(agent.end)
        agent.start()
        go_on("1", "2")
        # So that the kill ends one exchange only: an answer is recorded after it was forwarded.
        lcm.settle()

        assert killed_while_it_speaks(lcm, agent, turns["slowly"]) == SLOWLY.text.strip()
        go_on("3", "4")

        away_since = time.monotonic()
        lcm.to_database.cut()
        go_on("5", "10", "6")
        time.sleep(max(0, away_since + SECONDS_AWAY - time.monotonic()))
        go_on("7")
        lcm.to_database.mend()
        go_on("9")
        lcm.settle()

        lcm.to_database.cut()
        with_full_disk(lcm, lambda: go_on("11", "16", "17"))
        go_on("18")
    lcm.settle()

    check_record(lcm, HOSTS[host].surface, model)


def killed_while_it_speaks(lcm: Lcm, agent: LiveAgent, turn: Turn) -> str:
    """The agent's last words in a turn in whose answer the gateway is killed, and started again."""
    begin_and_hear(lcm, agent, turn, b"Sentence 3")
    lcm.kill_gateway()
    lcm.serve()
    return agent.finish().strip()


def with_full_disk(lcm: Lcm, work: Callable[[], None]) -> None:
    """Do something while no file of the gateway can be written; then its database is there again."""
    usual = resource.prlimit(lcm.gateway.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(lcm.gateway.pid, resource.RLIMIT_FSIZE, (MOST_BYTES, usual[1]))
    try:
        work()
        # They are in memory alone.
        assert not any(Path(lcm.spool).glob("*.exchange"))
    finally:
        resource.prlimit(lcm.gateway.pid, resource.RLIMIT_FSIZE, usual)
        lcm.to_database.mend()

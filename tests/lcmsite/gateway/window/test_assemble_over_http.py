"""Assemble mode over HTTP, before a vendor that keeps every request."""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import httpx2
import pytest

from compaction.models import CompactionBoundary
from conversations.models import Message
from conversations.scope import Scope
from lcmsite.gateway.surfaces import Surface
from lcmsite.models import ApiKey
from retrieval.engine import RetrievalEngine
from tests.lcmsite.gateway.conftest import SETTINGS, Running
from tests.lcmsite.gateway.sessions import PATHS, rendered
from tests.lcmsite.gateway.upstream import answering
from tests.lcmsite.gateway.window.checking import check_request, entries_of, tokens_of
from tests.lcmsite.gateway.window.wire import FACT, Step, Wire
from tests.lcmsite.operating import eventually

WINDOW = int(SETTINGS["LCM_MODEL_TOKEN_BUDGET"])
# More than fit into the window.
TURNS = 24
# One API shows it in the default run.
OTHERS = (Surface.CHAT, Surface.RESPONSES)
one_surface = pytest.mark.parametrize(
    "surface", [Surface.MESSAGES, *(pytest.param(each, marks=pytest.mark.thorough) for each in OTHERS)]
)


class Agent:
    """An agent behind the gateway, and the requests that its vendor sees."""

    def __init__(self, gateway: Running, surface: Surface) -> None:
        self.gateway, self.surface, self.wire = gateway, surface, Wire(surface)

    def call(self, text: str, *, body: bytes | None = None, **headers: str) -> httpx2.Response:
        """Send the history; the vendor answers with this text."""
        answer = rendered(self.surface, text).whole()
        self.gateway.upstream.reply = answering(answer)
        sent = json.dumps({**json.loads(self.wire.body()), "stream": False}).encode() if body is None else body
        headers = {"content_type": "application/json", "x_lcm_mode": "assemble", **headers}
        response = self.gateway.ask(PATHS[self.surface], sent, **headers)
        assert response.status_code == 200
        assert response.json() == answer
        return response

    @property
    def seen(self) -> bytes:
        """What the vendor has seen last."""
        return self.gateway.upstream.requests[-1][3]

    def entries(self) -> list[dict[str, Any]]:
        return entries_of(self.surface, self.seen)

    def talk_long(self) -> None:
        """Add more than fits to the history, and a question."""
        for number in range(TURNS):
            self.wire.ask(f"Turn {number}. {a_result(number)}")
            self.wire.answer(Step(f"Turn {number} is done."))
        self.wire.ask("And now?")

    def turn(self, number: int, result: str) -> list[httpx2.Response]:
        """One turn with a tool call."""
        self.wire.ask(f"Turn {number}: look into module_{number}.py.")
        first = self.call("Reading.")
        ids = self.wire.answer(Step("Reading.", results=("x",)))
        self.wire.return_results(ids, [result])
        second = self.call(f"Turn {number} is done.")
        self.wire.answer(Step(f"Turn {number} is done."))
        return [first, second]


def a_result(number: int) -> str:
    return f"def function_{number}(value): return value + {number}\n" * 80


def block_in(entries: list[dict[str, Any]]) -> str | None:
    return next((text for each in entries if "<lcm_injected" in (text := json.dumps(each))), None)


def search(gateway: Running, arguments: dict[str, Any]) -> str:
    """What LCM's tool gives back."""
    scope = Scope(ApiKey.objects.get(prefix=gateway.key[:12]).workspace_id)
    return str([match.snippet for match in RetrievalEngine.from_settings(scope).grep(**arguments).matches])


@pytest.mark.thorough
@pytest.mark.parametrize("surface", list(Surface))
def test_an_agent_goes_on_for_forty_turns_and_finds_what_was_left_out(gateway: Running, surface: Surface) -> None:
    agent = Agent(gateway, surface)
    blocks: list[str] = []
    before: list[dict[str, Any]] = []
    for number in range(1, 40):
        result = a_result(number)
        agent.turn(number, result + FACT + result if number == 2 else result)
        for _, _, _, body in gateway.upstream.requests:
            assert tokens_of(surface, body) <= WINDOW
            check_request(surface, body)
            block = block_in(entries_of(surface, body))
            if block is not None and blocks[-1:] != [block]:
                blocks.append(block)
        entries = agent.entries()
        if block_in(before) == block_in(entries):
            place = 1 if surface is Surface.CHAT else 0
            assert json.dumps(entries[place : len(before) - 1]).startswith(json.dumps(before[place:-2])[:-1])
        before = entries
        gateway.upstream.requests.clear()

    assert 1 <= len(blocks) <= 12
    [conversation_id] = set(re.findall(r"conversation_id\W+(\d+)", blocks[-1]))
    found = search(gateway, {"conversation_id": int(conversation_id), "query": "retry_ceiling heron"})
    agent.wire.ask("What is the retry ceiling?")
    agent.call("Looking it up.")
    assert FACT not in agent.seen.decode()
    agent.wire.return_results(agent.wire.answer(Step("Looking it up.", results=("x",))), [found])
    agent.call("4711")
    assert "4711" in agent.seen.decode()
    assert CompactionBoundary.objects.filter(conversation_id=int(conversation_id)).count() == len(blocks)


@one_surface
def test_a_long_history_is_shortened_and_stays_the_same_until_the_next_cut(gateway: Running, surface: Surface) -> None:
    agent = Agent(gateway, surface)
    for number in range(TURNS):
        agent.wire.ask(f"Turn {number}.")
        agent.wire.return_results(agent.wire.answer(Step("Reading.", results=("x",))), [a_result(number)])
        agent.wire.answer(Step(f"Turn {number} is done."))
    first, second = agent.turn(TURNS, a_result(TURNS))

    assert first.headers["x-lcm-status"] == "assembled"
    assert int(first.headers["x-lcm-tokens-out"]) <= WINDOW < int(first.headers["x-lcm-tokens-in"])
    assert int(first.headers["x-lcm-summaries"]) > 0
    bodies = [body for _, _, _, body in gateway.upstream.requests]
    assert [tokens_of(surface, body) for body in bodies] == [
        int(each.headers["x-lcm-tokens-out"]) for each in (first, second)
    ]
    assert block_in(entries_of(surface, bodies[0])) == block_in(entries_of(surface, bodies[1])) is not None
    for body in bodies:
        check_request(surface, body)
    conversation_id = int(first.headers["x-lcm-conversation"])
    stored = TURNS * 4 + 4
    eventually(lambda: Message.objects.filter(conversation_id=conversation_id).count() >= stored)
    assert not Message.objects.filter(content__contains="lcm_injected").exists()


def test_a_dry_run_sends_the_original_and_says_what_it_would_do(gateway: Running) -> None:
    agent = Agent(gateway, Surface.MESSAGES)
    agent.talk_long()

    response = agent.call("Now.", body=agent.wire.body(), x_lcm_mode="dry-run")

    assert agent.seen == agent.wire.body()
    assert response.headers["x-lcm-status"] == "recorded; window=would-assemble"
    assert int(response.headers["x-lcm-tokens-out"]) <= WINDOW
    assert not CompactionBoundary.objects.filter(conversation_id=response.headers["x-lcm-conversation"]).exists()


@pytest.mark.thorough
def test_a_packed_request_that_fits_goes_through_and_one_that_does_not_goes_unpacked(gateway: Running) -> None:
    agent = Agent(gateway, Surface.MESSAGES)
    agent.wire.ask("Hello")
    packed = gzip.compress(agent.wire.body())

    response = agent.call("Hello.", body=packed, content_encoding="gzip")

    assert agent.seen == packed
    assert response.headers["x-lcm-status"] == "recorded; window=fits"
    agent.wire.answer(Step("Hello."))
    agent.talk_long()

    agent.call("Now.", body=gzip.compress(agent.wire.body()), content_encoding="gzip")

    _, _, headers, body = gateway.upstream.requests[-1]
    names = {name.lower(): value for name, value in headers}
    assert "content-encoding" not in names
    assert int(names["content-length"]) == len(body)
    check_request(Surface.MESSAGES, body)

"""The gateway answers the model's lookups, and the agent sees one answer."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from conversations.models import JournalEntry
from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.surfaces_answer import AnswerReader, ReadAnswer
from tests.clients.answers import Answer, ToolCall
from tests.lcmsite.gateway.conftest import Running
from tests.lcmsite.gateway.sessions import PATHS, mine, rendered, results
from tests.lcmsite.gateway.upstream import answering, streaming
from tests.lcmsite.gateway.window.checking import check_request, entries_of
from tests.lcmsite.gateway.window.wire import FACT, Step, Wire
from tests.lcmsite.operating import eventually

LOOKUP = ToolCall("lcm_grep", {"query": "retry_ceiling heron"})
SENT = {"content_type": "application/json", "x_lcm_mode": "assemble", "x_lcm_lookups": "true"}


class Agent:
    """An agent with a long history, whose vendor answers by a script."""

    def __init__(self, gateway: Running, surface: Surface, *, is_streamed: bool) -> None:
        self.gateway, self.surface, self.is_streamed, self.wire = gateway, surface, is_streamed, Wire(surface)
        self.script: list[Answer] = []
        gateway.upstream.reply = self._reply
        for number in range(20):
            self.wire.ask(f"Turn {number}. " + f"def function_{number}(value): return value\n" * 80)
            self.wire.answer(Step(f"Turn {number} is done. {FACT if number == 2 else ''}"))

    def _reply(self, handler: Any) -> None:
        rendering = rendered(self.surface, self.script.pop(0))
        if not self.is_streamed:
            answering(rendering.whole())(handler)
            return
        # Cut where no event ends.
        whole = b"".join(rendering.stream())
        streaming(*(whole[start : start + 700] for start in range(0, len(whole), 700)))(handler)

    def send(self, *script: Answer) -> ReadAnswer:
        """Send the history; what the agent gets is added to it."""
        self.script = list(script)
        self.gateway.upstream.requests.clear()
        body = {**json.loads(self.wire.body()), "stream": self.is_streamed}
        response = self.gateway.ask(PATHS[self.surface], json.dumps(body).encode(), **SENT)
        assert response.status_code == 200
        assert response.headers["x-lcm-status"] == "assembled"
        assert self.script == []
        reader = AnswerReader(self.surface, self.is_streamed)
        reader.feed(response.content)
        answer = reader.finish()
        assert answer.is_complete
        assert "lcm_grep" not in response.text
        self.wire.entries += answer.rows
        return answer

    @property
    def seen(self) -> list[bytes]:
        """What the vendor has seen of the last request of the agent."""
        return [body for _, _, _, body in self.gateway.upstream.requests]


def text_of(answer: ReadAnswer) -> str:
    return "".join(re.findall(r'"(?:text|content)": "([^"]*)"', json.dumps(answer.rows)))


@pytest.mark.parametrize(
    ("surface", "is_streamed"),
    [
        (Surface.MESSAGES, True),
        (Surface.CHAT, True),
        (Surface.RESPONSES, True),
        *(pytest.param(each, False, marks=pytest.mark.thorough) for each in Surface),
    ],
)
def test_the_gateway_answers_lookups_and_the_agent_sees_one_answer(
    gateway: Running, surface: Surface, is_streamed: bool
) -> None:
    agent = Agent(gateway, surface, is_streamed=is_streamed)
    agent.wire.ask("What is the retry ceiling?")

    answer = agent.send(Answer("Let me look. ", (LOOKUP,), thinking="Where?"), Answer("It is 4711."))

    assert text_of(answer).endswith("Let me look. It is 4711.")
    first, second = agent.seen
    assert FACT not in first.decode() and "lcm_expand_range" in json.dumps(json.loads(first)["tools"])
    assert "4711" in json.dumps(entries_of(surface, second)[-1])
    assert entries_of(surface, second)[: len(entries_of(surface, first))] == entries_of(surface, first)
    check_request(surface, second)

    # A lookup beside a call of the agent's own: the result comes with the agent's next request.
    agent.wire.ask("Compare it with the file.")
    answer = agent.send(Answer("", (LOOKUP, ToolCall("Read", {"path": "a.py"}))))
    assert len(agent.seen) == 1
    eventually(lambda: JournalEntry.objects.filter(conversation=mine(gateway), subpath="gateway/lookups").count() == 2)
    agent.wire.entries += results(surface, list(answer.rows), "retry_ceiling = 1")
    agent.send(Answer("They differ."))

    [last] = agent.seen
    check_request(surface, last)
    assert last.count(b'"lcm_grep"') == 3
    entries, before = entries_of(surface, last), entries_of(surface, second)
    place = next(at for at, entry in enumerate(entries) if "It is 4711." in json.dumps(entry))
    assert _bare(entries[:place][-len(before) :]) == _bare(before)
    assert not mine(gateway).messages.filter(content__contains="lcm_grep").exists()


def test_count_tokens_counts_what_the_vendor_would_get(gateway: Running) -> None:
    agent = Agent(gateway, Surface.MESSAGES, is_streamed=True)
    agent.wire.ask("Go on.")
    agent.send(Answer("Done."))
    [sent] = agent.seen
    agent.wire.ask("And now?")
    gateway.upstream.requests.clear()
    gateway.upstream.reply = answering(b'{"input_tokens": 7}')

    counted = gateway.ask("/v1/messages/count_tokens", agent.wire.body(), **SENT)

    assert counted.json() == {"input_tokens": 7}
    assert counted.headers["x-lcm-status"] == "assembled"
    [(_, path, _, body)] = gateway.upstream.requests
    entries, before = entries_of(Surface.MESSAGES, body), entries_of(Surface.MESSAGES, sent)
    assert path == "/v1/messages/count_tokens"
    assert _bare(entries[: len(before)]) == _bare(before) and len(entries) == len(before) + 2
    eventually(lambda: mine(gateway).messages.count() == 20 * 2 + 2)


def test_an_event_that_cannot_be_read_is_logged_without_its_text(gateway: Running) -> None:
    events = [b"data: {secret\n\n", b"data: [secret\n\n", b'data: {"type": "message_stop"}\n\n']
    gateway.upstream.reply = streaming(*events)
    wire = Wire(Surface.MESSAGES)
    wire.ask("Hello")
    before = gateway.log.read_text().count("gateway_event_not_read")

    response = gateway.ask("/v1/messages", wire.body(), **SENT)

    assert response.content == b"".join(events)
    eventually(lambda: gateway.log.read_text().count("gateway_event_not_read") == before + 1)
    [*_, line] = [each for each in gateway.log.read_text().splitlines() if "gateway_event_not_read" in each]
    assert "JSONDecodeError" in line and "secret" not in line


@pytest.mark.thorough
def test_a_model_that_only_looks_up_is_stopped(gateway: Running) -> None:
    agent = Agent(gateway, Surface.MESSAGES, is_streamed=True)
    agent.wire.ask("What is the retry ceiling?")

    answer = agent.send(*[Answer("More. ", (LOOKUP,))] * 7)

    assert answer.stop_reason == "end_turn"
    assert text_of(answer) == "More. " * 7
    assert "Enough was looked up" in agent.seen[-1].decode()


def _bare(entries: list[dict[str, Any]]) -> str:
    return re.sub(r', "cache_control": {"type": "ephemeral"}', "", json.dumps(entries))

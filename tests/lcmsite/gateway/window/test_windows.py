"""Assemble mode on a database: an agent goes on far beyond its window."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

from compaction.engine import CompactionEngine
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from lcmsite.gateway.surfaces import Surface, read_request
from lcmsite.gateway.window import stored_memory
from lcmsite.gateway.window.types import Assembled
from lcmsite.gateway.window.windows import assemble_request
from tests.compacting import another_session_compacts
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.gateway.sessions import an_exchange
from tests.lcmsite.gateway.window.checking import entries_of
from tests.lcmsite.gateway.window.wire import Step, Wire

pytestmark = pytest.mark.usefixtures("committed_db")

WINDOW = 16_000


class Agent:
    """An agent whose requests are recorded, and then assembled."""

    def __init__(self, surface: Surface) -> None:
        self.wire = Wire(surface)
        self.scope = Scope(a_workspace().pk)
        self.store = ConversationStore.from_settings(self.scope)
        self.conversation_id = a_conversation(overrides={"model_token_budget": WINDOW}).conversation_id
        self.seqs: dict[int, int] = {}

    def request(self) -> tuple[bytes, Assembled]:
        """The body that the vendor sees, and what was done."""
        body = self.wire.body()
        read = read_request(self.wire.surface, json.loads(body))
        new = [each for each in read.messages if each.index not in self.seqs]
        if new:
            messages = [each.message for each in new]
            appended = self.store.append_messages(conversation_id=self.conversation_id, messages=messages)
            self.seqs |= {each.index: row.seq for each, row in zip(new, appended.messages, strict=True)}
        exchange = replace(an_exchange(self.wire.surface, {}), body=body)
        result = assemble_request(
            self.scope, exchange, self.conversation_id, self.seqs, is_trial=False, with_lookups=False
        )
        return body if result.shorter is None else result.shorter.body, result

    def first_shortened(self) -> tuple[bytes, Assembled]:
        """Go on for some turns, until one does not fit."""
        for number in range(40):
            self.wire.ask(f"Turn {number}: look into module_{number}.py.")
            ids = self.wire.answer(Step("Reading.", results=("x",)))
            self.wire.return_results(ids, [f"def function_{number}(value): return value + {number}\n" * 100])
            body, result = self.request()
            if result.shorter is not None:
                return body, result
            self.wire.answer(Step(f"module_{number}.py adds {number} to its value."))
        raise AssertionError("All of them fit.")


def test_what_was_injected_is_not_stored_when_it_comes_back() -> None:
    agent = Agent(Surface.CHAT)
    body, _ = agent.first_shortened()
    [block] = [each for each in entries_of(Surface.CHAT, body) if "<lcm_injected" in str(each["content"])]

    agent.wire.entries.append(block)
    read = read_request(Surface.CHAT, json.loads(agent.wire.body()))
    appended = agent.store.append_messages(conversation_id=agent.conversation_id, messages=[read.messages[-1].message])

    assert appended.messages == ()
    assert appended.skipped[0].is_whole


def test_a_compaction_in_progress_delays_a_request_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_memory, "COMPACTION_SECONDS", 0.3)
    agent = Agent(Surface.MESSAGES)
    with another_session_compacts(agent.conversation_id):
        body, result = agent.first_shortened()
    for work in threading.enumerate():
        if work.name == "gateway-compaction":
            work.join()

    assert result.tokens_out <= WINDOW
    assert b"No summary yet" in body

    CompactionEngine.from_settings(agent.scope).compact(conversation_id=agent.conversation_id)
    _, result = agent.request()
    assert result.is_new_cut
    assert result.summary_ids

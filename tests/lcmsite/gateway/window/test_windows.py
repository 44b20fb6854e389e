"""Assemble mode on a database: an agent goes on far beyond its window."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

from compaction.engine import CompactionEngine
from compaction.models import CompactionBoundary
from conversations.scope import Scope
from lcmsite.gateway.recording.recorder import Recorder
from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.window import stored_memory
from lcmsite.gateway.window.summary_block import SeqRange, pointer_to
from lcmsite.gateway.window.types import Assembled
from lcmsite.gateway.window.windows import assemble_request
from retrieval.engine import RetrievalEngine
from tests.compacting import another_session_compacts
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.gateway.sessions import an_exchange
from tests.lcmsite.gateway.window.wire import Step, Wire

pytestmark = pytest.mark.usefixtures("committed_db")

WINDOW = 16_000


class Agent:
    """An agent whose requests are recorded, and then assembled."""

    def __init__(self) -> None:
        self.wire = Wire(Surface.MESSAGES)
        self.scope = Scope(a_workspace().pk)
        self.conversation_id = a_conversation(
            session_id="long", overrides={"model_token_budget": WINDOW}
        ).conversation_id

    def request(self) -> Assembled:
        exchange = an_exchange(self.wire.surface, {}, headers={"x-lcm-session-id": "long"})
        exchange = replace(exchange, body=self.wire.body())
        recorded = Recorder.from_settings(self.scope).record_request(exchange, with_seqs=True)
        return assemble_request(
            self.scope, exchange, self.conversation_id, recorded.seqs, is_trial=False, with_lookups=False
        )

    def first_shortened(self) -> Assembled:
        """Go on for some turns, until one does not fit."""
        for number in range(40):
            self.wire.ask(f"Turn {number}: look into module_{number}.py.")
            ids = self.wire.answer(Step("Reading.", results=("x",)))
            self.wire.return_results(ids, [f"def function_{number}(value): return value + {number}\n" * 100])
            result = self.request()
            if result.shorter is not None:
                return result
            self.wire.answer(Step(f"module_{number}.py adds {number} to its value."))
        raise AssertionError("All of them fit.")


def test_a_compaction_in_progress_delays_a_request_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_memory, "COMPACTION_SECONDS", 0.3)
    agent = Agent()
    with another_session_compacts(agent.conversation_id):
        result = agent.first_shortened()
    for work in threading.enumerate():
        if work.name == "gateway-compaction":
            work.join()

    assert result.tokens_out <= WINDOW
    assert b"No summary yet" in result.shorter.body

    CompactionEngine.from_settings(agent.scope).compact(conversation_id=agent.conversation_id)
    result = agent.request()
    assert result.is_new_cut
    assert result.summary_ids


def test_a_stored_cut_keeps_the_same_system_messages_and_one_without_a_limit_keeps_all() -> None:
    agent = Agent()
    for number in range(200):
        agent.wire.ask(f"Turn {number}")
        agent.wire.instruct(f"Reminder {number:03}: this file has changed, read it again before you change it.")
        agent.wire.answer(Step("Done."))
    first = agent.first_shortened()
    again = agent.request()

    assert again.shorter == first.shorter and not again.is_new_cut
    assert b"older system messages" in first.shorter.body and b"Reminder 199" in first.shorter.body

    boundary = CompactionBoundary.objects.get()
    del boundary.metadata["gateway_window"]["most_system_tokens"]
    boundary.save(update_fields=["metadata"])
    unlimited = agent.request()

    assert not unlimited.is_new_cut
    assert unlimited.shorter.body.count(b": this file has changed") == 200


def test_the_call_named_for_a_range_returns_its_messages() -> None:
    number = a_conversation("one", "two", "three", session_id="pointed at").conversation_id

    arguments = (
        pointer_to(number, SeqRange(2, 3)).removeprefix("lcm_expand_range ").removesuffix(" gives the messages.")
    )
    found = RetrievalEngine.from_settings().expand_range(**json.loads(arguments))

    assert [item.content for item in found.items] == ["two", "three"]

"""Whatever a vendor of language models does, compaction ends in time, makes room, loses nothing and tells the truth."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from compaction.engine import CompactionEngine
from compaction.types import CompactionResult, Outcome
from conversations.models import Conversation
from conversations.types import ConversationRecord
from tests.compaction import vendor as does
from tests.compaction.vendor import Vendor
from tests.conversations.real_data import needs_data
from tests.factories import a_conversation
from tests.flows.vendors import ALL, TIGHT, Behaving, asking, assert_the_truth_is_recorded
from tests.flows.walk import assert_clean, assert_every_message_comes_back, imported, real_rows
from tests.round_trip import assert_ledgers_survive

# Conversations of fewer messages may be all fresh tail.
LONG_ENOUGH = 60
# For the default run, the shorter ones of each kind.
SHORT = {
    "chat": ("cc_ccl_12a", "tau_airline_2", "tau_airline_9", "cc_ccl_937", "tau_airline_3"),
    "anthropic": ("tau_airline_3", "tau_airline_9", "tau_airline_2"),
}

# Of four chunks.
TALK = [f"On day {n}, service-{n} was told to listen on port {5000 + n}. " * 20 for n in range(56)]

# What a run may take beyond its deadline: the last text is made without a model, and written.
GRACE_SECONDS = 20

pytestmark = [pytest.mark.usefixtures("committed_db")]


def every_way() -> Iterator[Any]:
    """Each way to behave on a conversation; by default one for each outcome, in one protocol by turns."""
    outcomes = set()
    for number, behaving in enumerate(ALL):
        outcome = (behaving.level, behaving.reason, behaving.requests)
        for place, (model, names) in enumerate(SHORT.items()):
            name = names[number % len(names)]
            marks = (
                [pytest.mark.slow] if (number + place) % 2 else [pytest.mark.thorough] if outcome in outcomes else []
            )
            yield pytest.param(name, model, behaving, id=f"{behaving.name}-{model}-{name}", marks=marks)
        outcomes.add(outcome)


@pytest.mark.sampled(2)
@needs_data
@pytest.mark.parametrize(("name", "model", "behaving"), [*every_way()])
def test_whatever_the_vendor_does_there_is_room_and_nothing_is_lost(
    settings: Any, name: str, model: str, behaving: Behaving
):
    rows = real_rows(name)
    conversation = imported(rows)
    before = conversation.counters.active_tokens

    with Vendor(*behaving.behaviours()) as vendor:
        settings.LCM = asking(vendor, model, **behaving.settings)
        results = []
        took = []
        # On a machine that is busy with other things a long conversation takes more than one run.
        while not results or (results[-1].outcome is Outcome.STOPPED and results[-1].run_id is not None):
            started = time.monotonic()
            results.append(compacted(conversation))
            took.append(time.monotonic() - started)

    if len(rows) >= LONG_ENOUGH:
        assert results[0].run_id is not None
        assert results[-1].outcome in (Outcome.COMPACTED, Outcome.NOTHING_TO_DO)
        assert active_tokens() == results[-1].tokens_after <= 0.7 * before
        assert_the_truth_is_recorded(behaving, vendor, model=model)
    assert max(took) < TIGHT["run_deadline_seconds"] + GRACE_SECONDS
    assert_clean()
    assert_every_message_comes_back(conversation, rows)
    assert_ledgers_survive()


def compacted(conversation: ConversationRecord) -> CompactionResult:
    return CompactionEngine.from_settings().compact(conversation_id=conversation.conversation_id)


def active_tokens() -> int:
    return Conversation.objects.get().active_tokens


def test_a_run_that_reaches_its_deadline_keeps_what_it_has_and_the_next_goes_on(settings: Any):
    conversation = a_conversation(*TALK)
    outcomes = []

    with Vendor(does.hangs) as vendor:
        settings.LCM = asking(vendor, "chat", run_deadline_seconds=2, model_timeout_seconds=600, model_attempts=3)
        started = time.monotonic()
        while not outcomes or outcomes[-1] is Outcome.STOPPED:
            outcomes.append(compacted(conversation).outcome)

    assert time.monotonic() - started < len(outcomes) * (2 + GRACE_SECONDS)
    assert outcomes[0] is Outcome.STOPPED
    assert outcomes[-1] in (Outcome.COMPACTED, Outcome.NOTHING_TO_DO)
    assert len(vendor.requests) == settings.LCM["breaker_failures"]
    assert active_tokens() < 0.7 * conversation.counters.active_tokens
    assert_clean()

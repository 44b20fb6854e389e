"""Without a model, a summary is a function of what it was made from, whatever the ids and the order of hashes."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.engine import CompactionEngine
from conversations.models import Summary
from lcmsite.sample.loading import sample_messages
from tests.factories import a_store
from tests.flows.edges import Model, Mood, engine_with

# Enough for summaries of summaries of summaries.
MESSAGES = 160
# So tight that summaries are made of summaries, and so wide that what these cost decides how long the next may be.
SETTINGS = {
    "leaf_chunk_tokens": 1500,
    "leaf_target_tokens": 300,
    "condensed_target_tokens": 900,
    "condense_fan_in": 3,
    "fresh_tail_count": 4,
    "autocompact_disabled": True,
}
ENGINES = {"extractive": CompactionEngine.from_settings, "telegraphic": lambda: engine_with(Model(Mood.AWAY))}


def compacted(engine: CompactionEngine, session_id: str) -> dict[str, Any]:
    """What the sample looks like when it was compacted in two pieces, as a conversation is that grows."""
    messages = sample_messages()[:MESSAGES]
    store = a_store()
    conversation_id = store.open_conversation(session_id=session_id, overrides=SETTINGS).conversation_id
    for half in (messages[: len(messages) // 2], messages[len(messages) // 2 :]):
        store.append_messages(conversation_id=conversation_id, messages=half)
        engine.compact(conversation_id=conversation_id)
    summaries = Summary.objects.filter(conversation_id=conversation_id).order_by("first_seq", "depth")
    items = store.get_context_items(conversation_id=conversation_id)
    return {
        "summaries": [
            (each.first_seq, each.last_seq, each.depth, each.model, each.content, bytes(each.summary_hash))
            for each in summaries
        ],
        "context": [(item.ordinal, item.item_type, item.token_count) for item in items],
    }


@pytest.mark.thorough
@pytest.mark.django_db
@pytest.mark.parametrize("model", ENGINES)
def test_the_same_conversation_comes_to_the_same_texts_and_hashes(model):
    # The second has higher ids. What the order of hashes does is tried with the summarizers.
    one, another = (compacted(ENGINES[model](), session_id) for session_id in ("one", "another"))

    assert one == another
    assert {made_by for _, _, _, made_by, _, _ in one["summaries"]} == {model}
    assert max(depth for _, _, depth, _, _, _ in one["summaries"]) >= 2

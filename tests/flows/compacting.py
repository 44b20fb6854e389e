"""Run as a process: puts a conversation into the database that it is given, compacts it, and prints what it made."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

if TYPE_CHECKING:
    from compaction.engine import CompactionEngine
    from conversations.types import NewMessage

# So tight that summaries are made of summaries, and so wide that what these cost decides how long the next may be.
SETTINGS = {
    "leaf_chunk_tokens": 1500,
    "leaf_target_tokens": 300,
    "condensed_target_tokens": 900,
    "condense_fan_in": 3,
    "fresh_tail_count": 4,
    "autocompact_disabled": True,
}


def main(conversation: Path, *, others: int) -> None:
    from django.core.management import call_command

    from compaction.engine import CompactionEngine
    from tests.factories import a_conversation
    from tests.flows.edges import Model, Mood, engine_with

    call_command("migrate", verbosity=0)
    if others:
        # Ids are the database's own: in one that has had others before, those of this conversation are higher.
        a_conversation(*["Somebody else's."] * others)
    messages = pickle.loads(conversation.read_bytes())
    made = {
        "extractive": made_of(messages, CompactionEngine.from_settings(), session_id="nobody is asked"),
        "telegraphic": made_of(messages, engine_with(Model(Mood.AWAY)), session_id="nobody answers"),
    }
    print(json.dumps(made))


def made_of(messages: list[NewMessage], engine: CompactionEngine, *, session_id: str) -> dict[str, Any]:
    """What the conversation looks like afterwards, and the ids of its summaries apart."""
    from conversations.models import Summary
    from tests.factories import a_store

    store = a_store()
    conversation_id = store.open_conversation(session_id=session_id, overrides=SETTINGS).conversation_id
    # In two pieces, as a conversation is compacted that grows.
    for half in (messages[: len(messages) // 2], messages[len(messages) // 2 :]):
        store.append_messages(conversation_id=conversation_id, messages=half)
        engine.compact(conversation_id=conversation_id)
    summaries = Summary.objects.filter(conversation_id=conversation_id).order_by("first_seq", "depth")
    return {
        "summaries": [
            {
                "messages": [summary.first_seq, summary.last_seq],
                "depth": summary.depth,
                "model": summary.model,
                "text": summary.content,
                "summary_hash": bytes(summary.summary_hash).hex(),
            }
            for summary in summaries
        ],
        "context": [
            [item.ordinal, item.item_type, item.token_count]
            for item in store.get_context_items(conversation_id=conversation_id)
        ],
        "ids": [summary.summary_id for summary in summaries],
    }


if __name__ == "__main__":
    django.setup()
    main(Path(sys.argv[1]), others=int(sys.argv[2]))

"""Many conversations, written and compacted at once: no finding, and every ledger survives the way out and back."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from compaction.engine import CompactionEngine
from compaction.models import CompactionRun
from conversations.types import NewMessage, Role
from integrity.checker import IntegrityChecker
from tests.factories import a_conversation, a_store
from tests.flows.writers import ODDITIES
from tests.round_trip import assert_ledgers_survive

# The default settings, a thirtieth as large: as many messages as a test writes put a conversation under pressure often.
SMALL = {
    "model_token_budget": 4000,
    "leaf_chunk_tokens": 600,
    "leaf_target_tokens": 60,
    "condensed_target_tokens": 90,
    "max_active_messages": 60,
}
WRITERS = 8
COMPACTORS = 2


@pytest.mark.parametrize(
    ("conversations", "turns"), [(4, 40), pytest.param(50, 800, marks=pytest.mark.thorough)], ids=["a few", "fifty"]
)
@pytest.mark.timeout(1200)
def test_conversations_written_beside_compaction_are_sound_and_their_ledgers_survive(
    committed_db, settings, conversations, turns
):
    settings.LCM = SMALL
    ids = [a_conversation().conversation_id for _ in range(conversations)]

    run_beside_each_other(ids, turns=turns)

    report = IntegrityChecker.from_settings().run()
    assert report.is_clean, report.broken
    assert report.conversations_checked == conversations
    assert CompactionRun.objects.values("conversation_id").distinct().count() == conversations
    assert_ledgers_survive()


def run_beside_each_other(ids: list[int], *, turns: int) -> None:
    """Writers append so many times each; until the last has, all conversations are compacted, over and over."""

    def write(number: int) -> None:
        chance = random.Random(number)
        store = a_store()
        for turn in range(turns):
            texts = [
                f"writer {number} turn {turn} set value-{chance.randrange(10**6)} of service-{n}"
                + chance.choice(ODDITIES)
                + " says a thing or two" * chance.choice((2, 8, 30))
                for n in range(chance.choice((1, 1, 5)))
            ]
            role = chance.choice((Role.USER, Role.ASSISTANT))
            store.append_messages(
                conversation_id=chance.choice(ids), messages=[NewMessage(role, text) for text in texts]
            )

    def compact(number: int) -> None:
        engine = CompactionEngine.from_settings()
        is_last = False
        while not is_last:
            # Once more after the last append, so that every conversation was compacted however the threads ran.
            is_last = all(each.done() for each in writers)
            for conversation_id in ids[number::COMPACTORS]:
                engine.compact(conversation_id=conversation_id)

    def closing(work: Callable[[int], None], number: int) -> None:
        try:
            work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(WRITERS + COMPACTORS) as pool:
        writers = [pool.submit(closing, write, number) for number in range(WRITERS)]
        compactors = [pool.submit(closing, compact, number) for number in range(COMPACTORS)]
        for each in (*writers, *compactors):
            each.result()

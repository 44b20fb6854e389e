"""Appends, moves of the head and compactions at once, each on a connection of its own."""

from __future__ import annotations

import random
from contextlib import suppress

from compaction.engine import CompactionEngine
from compaction.hosts.branching import Branches
from conversations.errors import Conflict
from conversations.models import HeadMove, Message
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from integrity.checker import IntegrityChecker
from tests.conversations.appending import at_once
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.integrity.breaking import found
from tests.round_trip import assert_ledgers_survive


def test_appends_moves_and_compactions_at_once_leave_a_sound_conversation(committed_db):
    options = {"fresh_tail_count": 2, "leaf_chunk_tokens": 300, "max_active_messages": 4}
    conversation_id = a_conversation("The first boat.", overrides=options).conversation_id
    scope = Scope(a_workspace().pk)

    def work(worker: int) -> int:
        choose, appended = random.Random(worker), 0
        for turn in range(5):
            match choose.choice(["append", "append", "move", "compact"]):
                case "append":
                    text = f"Boat {worker}.{turn} left the harbour in the morning. " * 5
                    say(conversation_id, text)
                    appended += 1
                case "move":
                    newest = a_store().get_conversation(conversation_id=conversation_id).counters.message_count
                    Branches.from_settings(scope).move_head(
                        conversation_id=conversation_id, head_seq=choose.randint(0, newest)
                    )
                case "compact":
                    # Another compaction is at work, or the head was moved under this one.
                    with suppress(Conflict):
                        CompactionEngine.from_settings(scope).compact(conversation_id=conversation_id)
        return appended

    appended = sum(at_once(work))

    assert Message.objects.filter(conversation_id=conversation_id).count() == appended + 1
    assert HeadMove.objects.filter(conversation_id=conversation_id).exists()
    assert found(IntegrityChecker.from_settings(scope).run(conversation_id=conversation_id)) == {}
    assert_ledgers_survive([conversation_id])


def test_of_writers_that_expect_the_same_head_one_is_stored(committed_db):
    conversation_id = a_conversation("one").conversation_id

    def write(writer: int) -> bool:
        message = [NewMessage(Role.USER, f"from {writer}")]
        try:
            a_store().append_messages(conversation_id=conversation_id, messages=message, expected_seq=1)
        except Conflict:
            return False
        return True

    assert sum(at_once(write)) == 1
    assert Message.objects.filter(conversation_id=conversation_id).count() == 2

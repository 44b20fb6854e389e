"""One compaction of a conversation at a time, whatever process it runs in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pglock

from conversations.errors import ConversationBusy

# The key space of our advisory locks, easy to find in pg_locks and in query logs.
COMPACTION = "lcm.compaction"


@contextmanager
def compaction_lock(conversation_id: int) -> Iterator[None]:
    """Hold the conversation's advisory lock, or raise ConversationBusy at once.

    It is a lock of the session, not of a transaction, for no transaction may stay open while a summarizer works. It
    ends with the connection, so a killed worker leaves none behind. What it guards is work, not truth: should a
    connection break and the lock be lost, the replacement of a range still succeeds for one writer only.
    """
    with pglock.advisory(f"{COMPACTION}.{conversation_id}", timeout=0) as acquired:
        if not acquired:
            raise ConversationBusy(f"Conversation {conversation_id} is being compacted already; try again shortly.")
        yield

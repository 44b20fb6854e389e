"""Simulate another session that is compacting a conversation."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from compaction.run import compaction_lock


@contextmanager
def another_session_compacts(conversation_id: int) -> Iterator[None]:
    """Hold the conversation's compaction lock during the block."""
    locked, done = threading.Event(), threading.Event()

    def hold() -> None:
        with compaction_lock(conversation_id):
            locked.set()
            done.wait(60)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait(60)
    try:
        yield
    finally:
        done.set()
        holder.join()

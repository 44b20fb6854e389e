"""A conversation to compact, and another session that is compacting one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from compaction.run import compaction_lock
from conversations.types import ConversationRecord
from lcmsite.connections import closing_connections
from tests.factories import a_conversation


def a_talk(count: int = 40, **options: Any) -> ConversationRecord:
    """A conversation with something in every message that the others do not say."""
    texts = (f"Item {n}: " + f"we set port {5000 + n} for service-{n}. " * 7 for n in range(count))
    return a_conversation(*texts, **options)


@contextmanager
def another_session_compacts(conversation_id: int) -> Iterator[None]:
    """Hold the conversation's compaction lock during the block."""
    locked, done = threading.Event(), threading.Event()

    def hold() -> None:
        with compaction_lock(conversation_id):
            locked.set()
            done.wait(60)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(closing_connections, hold)
        locked.wait(60)
        try:
            yield
        finally:
            done.set()

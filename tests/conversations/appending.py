"""Shortcuts of the store's own tests: say something, read it back, count it again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from typing import Any

from django.db import connection

from conversations.models import ContextItem, Message
from conversations.sql import rows
from conversations.types import Counters, MessageRecord, NewMessage, NewPart, PartType, Role
from tests.factories import a_store

WRITERS = 8
PATIENCE = 200
PART = NewPart(PartType.TEXT, text_content="text")

# A value for each column of a part that holds neither a text, nor a list, nor JSON.
UNLIKE_TEXT: dict[str, Any] = {
    "is_ignored": False,
    "is_synthetic": True,
    "compaction_auto": False,
    "step_tokens_in": 2**31 - 1,
    "step_tokens_out": 0,
    "step_cost": Decimal("0.001200"),
}


def full_part(part_type: PartType = PartType.TOOL) -> NewPart:
    """A part with a value in every column, none of which is simple."""
    values = {
        **UNLIKE_TEXT,
        "patch_files": ("a.py", "ü/b.py", "", "{", "NULL"),
        "tool_input": {"z": [1, 1.0, 1e22, -0.0, None, True], "a": {"nested": "\x00"}},
        "metadata": [{"b": 1}, "x"],
    }
    names = [each.name for each in fields(NewPart) if each.name != "part_type"]
    return NewPart(part_type, **{name: values.get(name, f"the {name} \x00 \ud800") for name in names})


def stored(conversation_id: int) -> list[MessageRecord]:
    return a_store().list_messages(conversation_id=conversation_id, limit=100_000)


def keyed(key: str, text: str = "text", **values: Any) -> NewMessage:
    return NewMessage(Role.USER, text, idempotency_key=key, **values)


def message_ids(conversation_id: int) -> list[int]:
    return list(Message.objects.filter(conversation_id=conversation_id).order_by("seq").values_list("pk", flat=True))


def shown(conversation_id: int) -> list[tuple[int, int | str | None]]:
    """The active context: what stands at which ordinal."""
    items = a_store().get_context_items(conversation_id=conversation_id)
    return [(item.ordinal, item.summary_id or item.message_id) for item in items]


def recounted(conversation_id: int) -> tuple[int, int]:
    """Raw messages in the context, and what the context costs, counted one by one."""
    items = list(ContextItem.objects.filter(conversation_id=conversation_id))
    return sum(item.message_id is not None for item in items), sum(item.token_count for item in items)


def assert_counters_are_recounts(conversation_id: int) -> None:
    counters = a_store().get_conversation(conversation_id=conversation_id).counters
    tokens = [message.token_count for message in stored(conversation_id)]
    active_messages, active_tokens = recounted(conversation_id)
    assert counters == Counters(
        message_count=len(tokens),
        total_tokens=sum(tokens),
        active_messages=active_messages,
        active_tokens=active_tokens,
    )


def a_lock_is_awaited() -> bool:
    """Whether a connection to this test's database waits for a lock of another."""
    # Within a transaction, PostgreSQL reads the activity once.
    rows("SELECT pg_stat_clear_snapshot()")
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return bool(rows(waiting))


def at_once(work: Callable[[int], Any], *, workers: int = WRITERS) -> list[Any]:
    """What each worker, on a connection of its own, comes back with; they start together."""
    start = threading.Barrier(workers)
    outcomes: dict[int, Any] = {}
    failures: list[BaseException] = []

    def run(worker: int) -> None:
        try:
            start.wait()
            outcomes[worker] = work(worker)
        except BaseException as failure:
            failures.append(failure)
        finally:
            connection.close()

    # Daemons, so that a deadlock fails this test and does not hold up the others.
    threads = [threading.Thread(target=run, args=(worker,), daemon=True) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert failures == []
    assert not any(thread.is_alive() for thread in threads), "the workers wait for one another"
    return [outcomes[worker] for worker in range(workers)]

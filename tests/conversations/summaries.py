"""Summaries for the store's own tests, written through the store, without compaction."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from conversations.models import ContextItem, Message
from conversations.store.conversations import ConversationStore
from conversations.types import Level, NewSummary, SummaryKind, SummaryRecord


def a_new_summary(conversation_id: int, **changes: Any) -> NewSummary:
    """A leaf, not yet written."""
    values: dict[str, Any] = {
        "conversation_id": conversation_id,
        "kind": SummaryKind.LEAF,
        "depth": 0,
        "content": "What was said.",
        "token_count": 4,
        "first_seq": 1,
        "last_seq": 1,
        "earliest_at": datetime(2026, 1, 31, tzinfo=UTC),
        "latest_at": datetime(2026, 1, 31, tzinfo=UTC),
        "source_count": 1,
        "descendant_count": 1,
        "source_tokens": 10,
        "level": Level.NORMAL,
        "model": "by hand",
        "summary_hash": "00" * 32,
        "token_counter": "estimate",
        "run_id": "run_0",
    }
    return NewSummary(**values | changes)


@transaction.atomic
def a_summary_of(conversation_id: int, *, first_seq: int, last_seq: int, item_tokens: int = 10) -> SummaryRecord:
    """A leaf over these messages, standing in the context in their place."""
    store = ConversationStore.from_settings()
    messages = Message.objects.filter(conversation_id=conversation_id).between(first_seq, last_seq).oldest_first()
    message_ids = list(messages.values_list("pk", flat=True))
    new = a_new_summary(
        conversation_id,
        first_seq=first_seq,
        last_seq=last_seq,
        source_count=len(message_ids),
        descendant_count=len(message_ids),
    )
    summary = store.insert_summary(summary=new)
    store.link_summary_to_messages(summary_id=summary.summary_id, message_ids=message_ids)
    store.replace_context_range_with_summary(
        conversation_id=conversation_id,
        summary_id=summary.summary_id,
        source_count=len(message_ids),
        item_tokens=item_tokens,
    )
    return summary


@transaction.atomic
def a_condensed_summary_of(conversation_id: int, *sources: SummaryRecord, item_tokens: int = 10) -> SummaryRecord:
    """A condensed summary over these, standing in the context in their place."""
    store = ConversationStore.from_settings()
    new = a_new_summary(
        conversation_id,
        kind=SummaryKind.CONDENSED,
        depth=1 + max(source.depth for source in sources),
        first_seq=min(source.first_seq for source in sources),
        last_seq=max(source.last_seq for source in sources),
        source_count=len(sources),
        descendant_count=sum(source.descendant_count for source in sources),
    )
    summary = store.insert_summary(summary=new)
    store.link_summary_to_parents(summary_id=summary.summary_id, source_ids=[each.summary_id for each in sources])
    store.replace_context_range_with_summary(
        conversation_id=conversation_id,
        summary_id=summary.summary_id,
        source_count=len(sources),
        item_tokens=item_tokens,
    )
    return summary


def recounted(conversation_id: int) -> tuple[int, int]:
    """Raw messages in the context, and what the context costs, counted one by one."""
    items = list(ContextItem.objects.filter(conversation_id=conversation_id))
    return sum(item.message_id is not None for item in items), sum(item.token_count for item in items)

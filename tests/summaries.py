"""Create single summaries of exactly the sources that a test names."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from compaction.rendering import render_summary
from conversations.content import hashing
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.models import Message, Summary
from conversations.store.conversations import ConversationStore
from conversations.types import Level, NewSummary, SummaryKind, SummaryRecord

_numbers = itertools.count(1)


def a_new_summary(conversation_id: int, **changes: Any) -> NewSummary:
    """A leaf summary of the first message, not yet stored."""
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
        "run_id": "run_0000000000000000",
    }
    return NewSummary(**values | changes)


@transaction.atomic
def a_summary_of(
    store: ConversationStore,
    conversation_id: int,
    *,
    seqs: Sequence[int] = (),
    summaries: Sequence[SummaryRecord] = (),
    content: str | None = None,
    item_tokens: int | None = None,
    level: Level = Level.NORMAL,
) -> SummaryRecord:
    """Store a summary of these messages and summaries, which replaces them."""
    messages = list(Message.objects.filter(conversation_id=conversation_id, seq__in=seqs).order_by("seq"))
    sources = [Summary.objects.get(pk=summary.summary_id) for summary in summaries]
    text = content or f"What was said, part {next(_numbers)}."
    hashes = [bytes(message.content_hash).hex() for message in messages]
    hashes += [bytes(source.summary_hash).hex() for source in sources]
    seqs = [message.seq for message in messages]
    times = [message.created_at for message in messages]
    record = store.insert_summary(
        summary=a_new_summary(
            conversation_id,
            kind=SummaryKind.CONDENSED if sources else SummaryKind.LEAF,
            depth=1 + max((source.depth for source in sources), default=-1),
            content=text,
            token_count=store.tokens.count(text),
            first_seq=min(seqs + [source.first_seq for source in sources]),
            last_seq=max(seqs + [source.last_seq for source in sources]),
            earliest_at=min(times + [source.earliest_at for source in sources]),
            latest_at=max(times + [source.latest_at for source in sources]),
            source_count=len(messages) + len(sources),
            descendant_count=len(messages) + sum(source.descendant_count for source in sources),
            source_tokens=sum(each.token_count for each in messages) + sum(each.source_tokens for each in sources),
            summary_hash=hashing.summary_hash(hashes, text).hex(),
            token_counter=store.tokens.name,
            level=level,
        )
    )
    store.link_summary_to_messages(summary_id=record.summary_id, message_ids=[each.message_id for each in messages])
    store.link_summary_to_parents(summary_id=record.summary_id, source_ids=[each.summary_id for each in sources])
    if item_tokens is None:
        item_tokens = store.tokens.count(render_summary(record)) + MESSAGE_OVERHEAD_TOKENS
    store.replace_context_range_with_summary(
        conversation_id=conversation_id,
        summary_id=record.summary_id,
        source_count=record.source_count,
        item_tokens=item_tokens,
    )
    return record

"""Summaries made by the store's own methods, one at a time and of exactly the sources a test names."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from django.db import transaction

from compaction.rendering import render_summary
from conversations.content import hashing
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.models import Message, Summary
from conversations.store.conversations import ConversationStore
from conversations.types import Level, NewSummary, SummaryKind, SummaryRecord

_numbers = itertools.count(1)


@transaction.atomic
def a_summary_of(
    store: ConversationStore,
    conversation_id: int,
    *,
    seqs: Sequence[int] = (),
    summaries: Sequence[SummaryRecord] = (),
    content: str | None = None,
) -> SummaryRecord:
    """A summary of these messages and older summaries, put in their place in the context."""
    messages = list(Message.objects.filter(conversation_id=conversation_id, seq__in=seqs).order_by("seq"))
    sources = [Summary.objects.get(pk=summary.summary_id) for summary in summaries]
    text = content or f"What was said, part {next(_numbers)}."
    hashes = [bytes(message.content_hash).hex() for message in messages]
    hashes += [bytes(source.summary_hash).hex() for source in sources]
    record = store.insert_summary(
        summary=NewSummary(
            conversation_id=conversation_id,
            kind=SummaryKind.CONDENSED if sources else SummaryKind.LEAF,
            depth=1 + max((source.depth for source in sources), default=-1),
            content=text,
            token_count=store.tokens.count(text),
            first_seq=min([message.seq for message in messages] + [source.first_seq for source in sources]),
            last_seq=max([message.seq for message in messages] + [source.last_seq for source in sources]),
            earliest_at=min([message.created_at for message in messages] + [each.earliest_at for each in sources]),
            latest_at=max([message.created_at for message in messages] + [each.latest_at for each in sources]),
            source_count=len(messages) + len(sources),
            descendant_count=len(messages) + sum(source.descendant_count for source in sources),
            source_tokens=sum(message.token_count for message in messages)
            + sum(source.source_tokens for source in sources),
            level=Level.NORMAL,
            model="by hand",
            summary_hash=hashing.summary_hash(hashes, text).hex(),
            token_counter=store.tokens.name,
            run_id="run_0000000000000000",
        )
    )
    if messages:
        store.link_summary_to_messages(
            summary_id=record.summary_id, message_ids=[message.message_id for message in messages]
        )
    if sources:
        store.link_summary_to_parents(
            summary_id=record.summary_id, source_ids=[source.summary_id for source in sources]
        )
    store.replace_context_range_with_summary(
        conversation_id=conversation_id,
        summary_id=record.summary_id,
        source_count=record.source_count,
        item_tokens=store.tokens.count(render_summary(record)) + MESSAGE_OVERHEAD_TOKENS,
    )
    return record

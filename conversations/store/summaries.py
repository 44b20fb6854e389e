"""Summaries, their lineage, and the active context that they make room in."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from django.db import connection, transaction
from django.db.models import F

from conversations.errors import Conflict
from conversations.models import ContextItem, Conversation, Message, Summary
from conversations.store.base import Store
from conversations.types import (
    ContextItemRecord,
    ContextItemType,
    MessageRecord,
    NewSummary,
    SummaryRecord,
)

_LINK_MESSAGES = """
    INSERT INTO summary_messages (summary_id, message_id, ordinal)
    SELECT %s, message_id, place - 1 FROM unnest(%s::bigint[]) WITH ORDINALITY AS given(message_id, place)
"""
_LINK_PARENTS = """
    INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal)
    SELECT %s, source_id, place - 1 FROM unnest(%s::text[]) WITH ORDINALITY AS given(source_id, place)
"""
_TAKE_OUT = """
    WITH removed AS (
        DELETE FROM context_items
        WHERE conversation_id = %(conversation_id)s
          AND (message_id IN (SELECT message_id FROM summary_messages WHERE summary_id = %(summary_id)s)
               OR summary_id IN (SELECT parent_summary_id FROM summary_parents WHERE summary_id = %(summary_id)s))
        RETURNING ordinal, item_type, token_count
    )
    SELECT count(*), min(ordinal), coalesce(sum(token_count), 0), count(*) FILTER (WHERE item_type = 'message')
    FROM removed
"""


@dataclass(frozen=True)
class SummaryStore(Store):
    def insert_summary(self, *, summary: NewSummary) -> SummaryRecord:
        """Write a summary; its links must follow in the same transaction, or the database refuses the commit."""
        values = asdict(summary)
        values["summary_id"] = summary.summary_id or f"sum_{secrets.token_hex(8)}"
        values["file_ids"] = list(summary.file_ids)
        values["summary_hash"] = bytes.fromhex(summary.summary_hash)
        row = Summary(**values)
        row.save(force_insert=True)
        return row.as_record()

    def link_summary_to_messages(self, *, summary_id: str, message_ids: Sequence[int]) -> None:
        """Record which messages a summary was made from, in order."""
        if not message_ids:
            return
        with connection.cursor() as cursor:
            cursor.execute(_LINK_MESSAGES, [summary_id, list(message_ids)])

    def link_summary_to_parents(self, *, summary_id: str, source_ids: Sequence[str]) -> None:
        """Record which older summaries a condensed summary was made from, in order."""
        if not source_ids:
            return
        with connection.cursor() as cursor:
            cursor.execute(_LINK_PARENTS, [summary_id, list(source_ids)])

    @transaction.atomic(savepoint=False)
    def replace_context_range_with_summary(
        self, *, conversation_id: int, summary_id: str, source_count: int, item_tokens: int
    ) -> int:
        """Let a summary stand where its sources stood; returns its ordinal, that of its first source.

        The range is what the summary's lineage says, so context and lineage cannot come apart. Raises Conflict, with
        nothing changed, unless every one of the `source_count` sources is still in the context.
        """
        self.scope.conversation(conversation_id, locked=True)
        with connection.cursor() as cursor:
            cursor.execute(_TAKE_OUT, {"conversation_id": conversation_id, "summary_id": summary_id})
            removed, ordinal, tokens, messages = cursor.fetchone()
        if removed != source_count or removed == 0:
            raise Conflict("The context changed while this summary was made; nothing was replaced.")
        ContextItem(
            conversation_id=conversation_id,
            ordinal=ordinal,
            item_type=ContextItemType.SUMMARY,
            summary_id=summary_id,
            token_count=item_tokens,
        ).save(force_insert=True)
        Conversation.objects.filter(pk=conversation_id).update(
            active_messages=F("active_messages") - messages,
            active_tokens=F("active_tokens") - tokens + item_tokens,
        )
        return ordinal

    def get_context_items(self, *, conversation_id: int) -> list[ContextItemRecord]:
        """The active context's slots, in order."""
        conversation = self.scope.conversation(conversation_id)
        return [
            ContextItemRecord(
                conversation_id=conversation_id,
                ordinal=item.ordinal,
                item_type=ContextItemType(item.item_type),
                token_count=item.token_count,
                message_id=item.message_id,
                summary_id=item.summary_id,
            )
            for item in conversation.context_items.in_order()
        ]

    def get_summary(self, *, summary_id: str) -> SummaryRecord:
        """One summary; NotFound if there is none."""
        return self.scope.summary(summary_id).as_record()

    def get_summary_children(self, *, summary_id: str) -> list[SummaryRecord]:
        """The summaries that this one was made from: its sources, which expansion opens. Empty for a leaf."""
        self.scope.summary(summary_id)
        sources = Summary.objects.filter(derived_links__summary_id=summary_id).order_by("derived_links__ordinal")
        return [summary.as_record() for summary in sources.readable()]

    def get_summary_messages(self, *, summary_id: str) -> list[MessageRecord]:
        """The messages that this summary was made from directly, in order, with their parts."""
        self.scope.summary(summary_id)
        messages = Message.objects.filter(summary_links__summary_id=summary_id)
        return messages.order_by("summary_links__ordinal").as_records()

"""Summaries, their lineage, and the active context that they make room in."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from django.db import connection, transaction

from conversations.errors import Conflict
from conversations.models import Message, Summary
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
# Each source finds its own item: a search among the items would go through the whole context for every summary.
_REPLACE = """
    WITH raw AS (
        DELETE FROM context_items item USING summary_messages link
        WHERE link.summary_id = %(summary_id)s AND item.message_id = link.message_id
          AND item.conversation_id = %(conversation_id)s
        RETURNING item.ordinal, item.token_count
    ), merged AS (
        DELETE FROM context_items item USING summary_parents link
        WHERE link.summary_id = %(summary_id)s AND item.summary_id = link.parent_summary_id
          AND item.conversation_id = %(conversation_id)s
        RETURNING item.ordinal, item.token_count
    ), gone AS (
        SELECT count(*) AS items, min(ordinal) AS ordinal, sum(token_count) AS tokens,
               (SELECT count(*) FROM raw) AS messages
        FROM (SELECT * FROM raw UNION ALL SELECT * FROM merged) AS item
    ), shown AS (
        INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id, token_count)
        SELECT %(conversation_id)s, ordinal, 'summary', %(summary_id)s, %(item_tokens)s FROM gone WHERE items > 0
    ), counted AS (
        UPDATE conversations
        SET active_messages = active_messages - gone.messages,
            active_tokens = active_tokens - gone.tokens + %(item_tokens)s
        FROM gone WHERE conversation_id = %(conversation_id)s AND items > 0
    )
    SELECT items, ordinal FROM gone
"""


@dataclass(frozen=True)
class SummaryStore(Store):
    def insert_summary(self, *, summary: NewSummary) -> SummaryRecord:
        """Write a summary; its links must follow in the same transaction, or the database refuses the commit."""
        if self.scope.workspace_id is not None:
            self.scope.conversation(summary.conversation_id)
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
        self._require(summary_id)
        with connection.cursor() as cursor:
            cursor.execute(_LINK_MESSAGES, [summary_id, list(message_ids)])

    def link_summary_to_parents(self, *, summary_id: str, source_ids: Sequence[str]) -> None:
        """Record which older summaries a condensed summary was made from, in order."""
        if not source_ids:
            return
        self._require(summary_id)
        with connection.cursor() as cursor:
            cursor.execute(_LINK_PARENTS, [summary_id, list(source_ids)])

    def _require(self, summary_id: str) -> None:
        """NotFound for a summary that this scope may not see; for workers, who may see all, nothing is asked."""
        if self.scope.workspace_id is not None:
            self.scope.summary(summary_id)

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
            cursor.execute(
                _REPLACE,
                {"conversation_id": conversation_id, "summary_id": summary_id, "item_tokens": item_tokens},
            )
            removed, ordinal = cursor.fetchone()
        if removed != source_count or removed == 0:
            raise Conflict("The context changed while this summary was made; nothing was replaced.")
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

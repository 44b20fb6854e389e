"""Summaries, their lineage, and the active context that they make room in."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db import connection, transaction

from conversations.errors import Conflict
from conversations.models import Message, Summary
from conversations.sql import array, first_row
from conversations.store.append import as_json, part_row_of
from conversations.store.base import Store
from conversations.store.page_bytes import Page
from conversations.types import (
    ContextItemRecord,
    ContextItemType,
    MessageRecord,
    NewPart,
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
_SHOW = "SELECT items, ordinal FROM lcm_show_summary(%s, %s, %s)"
_WRITE = "SELECT items, ordinal FROM lcm_write_summary(%s, %s, %s::bigint[], %s::text[], %s, %s)"


def _ordinal_of(shown: dict[str, Any] | None, *, expected: int) -> int:
    """Where the summary stands now; Conflict unless it replaced as many items as it should."""
    if shown is None or shown["items"] != expected:
        raise Conflict("The context changed while this summary was made; nothing was replaced.")
    return shown["ordinal"]


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
        shown = first_row(_SHOW, (conversation_id, summary_id, item_tokens))
        return _ordinal_of(shown, expected=source_count)

    @transaction.atomic(savepoint=False)
    def write_summary(
        self,
        *,
        summary: NewSummary,
        message_ids: Sequence[int],
        source_ids: Sequence[str],
        item_tokens: int | None,
        mark: NewPart,
    ) -> int | None:
        """A finished summary with its lineage and its place in the context: all at once, or not at all.

        It stands in the context, for so many tokens, where its sources stood, or, if it supersedes a summary, where
        that one stood; with None for tokens it does not stand there. `mark` goes to the last message it stands for.
        Returns its ordinal. Raises Conflict, with nothing written, unless what it replaces is all still there.
        """
        if self.scope.workspace_id is not None:
            self.scope.conversation(summary.conversation_id)
        written = first_row(
            _WRITE,
            (
                summary.conversation_id,
                json.dumps(vars(summary), default=str),
                array(message_ids),
                list(source_ids),
                item_tokens,
                as_json(part_row_of(mark)),
            ),
        )
        if item_tokens is None:
            return None
        return _ordinal_of(written, expected=1 if summary.supersedes_id else len(message_ids) + len(source_ids))

    def get_context_items(
        self, *, conversation_id: int, after_ordinal: int | None = None, limit: int = 10_000
    ) -> list[ContextItemRecord]:
        """The active context's slots behind `after_ordinal`, in order; `more` says that others follow."""
        conversation = self.scope.conversation(conversation_id)
        rows = conversation.context_items.in_order()
        if after_ordinal is not None:
            rows = rows.filter(ordinal__gt=after_ordinal)
        found = list(rows[: limit + 1])
        items = [
            ContextItemRecord(
                conversation_id=conversation_id,
                ordinal=item.ordinal,
                item_type=ContextItemType(item.item_type),
                token_count=item.token_count,
                message_id=item.message_id,
                summary_id=item.summary_id,
            )
            for item in found[:limit]
        ]
        return Page(items, more=len(found) > limit)

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

"""Summaries, their lineage, and the active context that they make room in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from conversations.errors import Conflict
from conversations.sql import array, first_row
from conversations.store.append import as_json, part_row_of
from conversations.store.messages import MessageStore
from conversations.store.pages import Page
from conversations.types import (
    ContextItemRecord,
    ContextItemType,
    NewPart,
    NewSummary,
)

_WRITE = "SELECT items, ordinal FROM lcm_write_summary(%s, %s, %s::bigint[], %s::text[], %s, %s)"


def ordinal_of(shown: dict[str, Any] | None, *, expected: int) -> int:
    """The summary's ordinal; Conflict unless it replaced the expected items."""
    if shown is None or shown["items"] != expected:
        raise Conflict("The context changed while this summary was made; nothing was replaced.")
    return shown["ordinal"]


@dataclass(frozen=True)
class SummaryStore(MessageStore):
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
        """Write a finished summary with its lineage and its place in the context.

        It takes the place of its sources in the context, or of the summary that it supersedes, at a cost of
        `item_tokens`; with None it is not in the context. `mark` goes to the last message it stands for. Returns its
        ordinal. Raises Conflict, with nothing written, unless what it replaces is all still there.
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
        return ordinal_of(written, expected=1 if summary.supersedes_id else len(message_ids) + len(source_ids))

    def get_context_items(
        self, *, conversation_id: int, after_ordinal: int | None = None, limit: int = 10_000
    ) -> list[ContextItemRecord]:
        """List the slots of the active context, in order."""
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

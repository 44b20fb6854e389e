"""Methods of the store that only the specification requires.

LCM writes through `append_messages` and `write_summary`, one statement each, and searches through `grep`.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Max, QuerySet

from conversations.content.lossless_values import is_storable
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.errors import Conflict, Invalid, NotFound
from conversations.models import ContextItem, Conversation, Message, MessagePart, Summary, SummaryMessage, SummaryParent
from conversations.models.columns import SearchableQuerySet
from conversations.sql import first_row
from conversations.store.messages import MessageStore
from conversations.store.part_rows import part_row_of
from conversations.store.read import messages_of
from conversations.store.withheld import readable, readable_summaries
from conversations.types import (
    ContextItemType,
    MessageRecord,
    NewMessage,
    NewPart,
    NewSummary,
    Role,
    SummaryKind,
    SummaryRecord,
)

MOST_RESULTS = 1000


@dataclass(frozen=True)
class MessageSearchResult:
    """A message that matches a query, with its rank."""

    message_id: int
    conversation_id: int
    seq: int
    role: Role
    token_count: int
    created_at: datetime
    rank: float


@dataclass(frozen=True)
class SummarySearchResult:
    """A summary that matches a query, with its rank."""

    summary_id: str
    conversation_id: int
    kind: SummaryKind
    depth: int
    first_seq: int
    last_seq: int
    token_count: int
    created_at: datetime
    rank: float


@dataclass(frozen=True)
class SpecificationStore(MessageStore):
    def create_message(self, *, conversation_id: int, message: NewMessage) -> MessageRecord:
        """Append one message and return it as it is stored."""
        appended = self.append_messages(conversation_id=conversation_id, messages=[message]).messages[0]
        return self.get_message(message_id=appended.message_id)

    @transaction.atomic(savepoint=False)
    def create_message_parts(self, *, message_id: int, parts: Sequence[NewPart]) -> None:
        """Add parts to a message; its content, cost and chain stay the same."""
        try:
            rows = [part_row_of(part) for part in parts]
        except ValueError as wrong:
            raise Invalid(str(wrong)) from wrong
        # Locks the conversation's row, so that concurrent callers do not use the same ordinals.
        conversation = self.scope.conversation_of(message_id=message_id)
        last = MessagePart.objects.filter(message_id=message_id).aggregate(last=Max("ordinal"))["last"]
        MessagePart.objects.bulk_create(
            MessagePart(
                part_id=f"part_{message_id}_{ordinal}",
                message_id=message_id,
                session_id=conversation.session_id,
                ordinal=ordinal,
                **{
                    **row,
                    "part_hash": bytes.fromhex(row["part_hash"]),
                    "exact": json.loads(row["exact"]) if "exact" in row else None,
                },
            )
            for ordinal, row in enumerate(rows, start=0 if last is None else last + 1)
        )

    @transaction.atomic
    def append_context_message(self, *, conversation_id: int, message_id: int) -> None:
        """Add a stored message to the active context, unless it is there already.

        Appending does this by itself. Raises NotFound, or Conflict if a summary covers the message.
        """
        self.scope.conversation(conversation_id, locked=True)
        message = self.scope.message(message_id)
        if message.conversation_id != conversation_id:
            raise NotFound(f"There is no message 'msg_{message_id}' in conversation {conversation_id}.")
        if not Message.objects.filter(pk=message_id).uncovered().exists():
            raise Conflict(f"msg_{message_id} is in the context already, through the summary that covers it.")
        item, created = ContextItem.objects.get_or_create(
            message_id=message_id,
            defaults={
                "conversation_id": conversation_id,
                "ordinal": message.seq,
                "item_type": ContextItemType.MESSAGE,
                "token_count": message.token_count + MESSAGE_OVERHEAD_TOKENS,
            },
        )
        if created:
            Conversation.objects.filter(pk=conversation_id).update(
                active_messages=F("active_messages") + 1, active_tokens=F("active_tokens") + item.token_count
            )

    def insert_summary(self, *, summary: NewSummary) -> SummaryRecord:
        """Write a summary; its links must follow in the same transaction."""
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
        self._require(summary_id)
        SummaryMessage.objects.bulk_create(
            SummaryMessage(summary_id=summary_id, message_id=each, ordinal=n) for n, each in enumerate(message_ids)
        )

    def link_summary_to_parents(self, *, summary_id: str, source_ids: Sequence[str]) -> None:
        """Record which older summaries a condensed summary was made from, in order."""
        self._require(summary_id)
        SummaryParent.objects.bulk_create(
            SummaryParent(summary_id=summary_id, source_id=each, ordinal=n) for n, each in enumerate(source_ids)
        )

    def _require(self, summary_id: str) -> None:
        """Raise NotFound for a summary outside this scope; not checked for workers."""
        if self.scope.workspace_id is not None:
            self.scope.summary(summary_id)

    @transaction.atomic(savepoint=False)
    def replace_context_range_with_summary(
        self, *, conversation_id: int, summary_id: str, source_count: int, item_tokens: int
    ) -> int:
        """Replace the sources of a summary in the context by the summary.

        Returns its ordinal. The sources are those of its lineage, so that context and lineage cannot diverge. Raises
        Conflict, changing nothing, unless all `source_count` sources are still in the context.
        """
        self.scope.conversation(conversation_id, locked=True)
        shown = first_row("SELECT * FROM lcm_show_summary(%s, %s, %s)", (conversation_id, summary_id, item_tokens))
        return ordinal_of(shown, expected=source_count)

    def get_summary(self, *, summary_id: str) -> SummaryRecord:
        """Return one summary; NotFound if it does not exist.

        A quarantined summary is returned without its text. One that repeats words of a message quarantined later is not
        withheld here: `compaction/sources.py` finds these, and `RetrievalEngine.describe` withholds both.
        """
        [summary] = readable_summaries([self.scope.summary(summary_id).as_record()])
        return summary

    def get_summary_children(self, *, summary_id: str) -> list[SummaryRecord]:
        """Return the summaries that this one was made from; none for a leaf.

        Quarantined summaries are returned without their text, as by `get_summary`.
        """
        self.scope.summary(summary_id)
        sources = Summary.objects.filter(derived_links__summary_id=summary_id).order_by("derived_links__ordinal")
        return readable_summaries([summary.as_record() for summary in sources.readable()])

    def get_summary_messages(self, *, summary_id: str) -> list[MessageRecord]:
        """Return the messages that a leaf was made from, in order; [] for others."""
        self.scope.summary(summary_id)
        messages = Message.objects.filter(summary_links__summary_id=summary_id).order_by("summary_links__ordinal")
        return readable(messages_of(list(messages.values_list("message_id", flat=True))))

    def search_messages(
        self, *, query: str, conversation_id: int | None = None, limit: int = 20
    ) -> list[MessageSearchResult]:
        """Find messages by a websearch query, best first, then newest first."""
        found = self._found(MessageSearchResult, Message.objects.all(), query, conversation_id, limit, "-message_id")
        return [MessageSearchResult(**{**row, "role": Role(row["role"])}) for row in found]

    def search_summaries(
        self, *, query: str, conversation_id: int | None = None, limit: int = 20
    ) -> list[SummarySearchResult]:
        """Find summaries by a websearch query, best first, then newest first."""
        newest_first = ("-last_seq", "summary_id")
        found = self._found(SummarySearchResult, Summary.objects.all(), query, conversation_id, limit, *newest_first)
        return [SummarySearchResult(**{**row, "kind": SummaryKind(row["kind"])}) for row in found]

    def _found(
        self, result: Any, rows: SearchableQuerySet, query: str, conversation_id: int | None, limit: int, *order: str
    ) -> QuerySet[Any, dict[str, Any]]:
        """Return the columns that `result` needs of the best matching rows."""
        if not 1 <= limit <= MOST_RESULTS:
            raise Invalid(f"limit: {limit} is not from 1 to {MOST_RESULTS}.")
        if not is_storable(query):
            raise Invalid("query: no text holds a NUL or a lone surrogate, so it cannot be searched for.")
        if conversation_id is not None:
            rows = rows.filter(conversation_id=self.scope.conversation(conversation_id).pk)
        found = self.scope.narrow(rows.matching(query)).order_by("-rank", *order)
        return found.values(*result.__dataclass_fields__)[:limit]


def ordinal_of(shown: dict[str, Any] | None, *, expected: int) -> int:
    """Return a summary's ordinal; Conflict unless it replaced `expected` items."""
    if shown is None or shown["items"] != expected:
        raise Conflict("The context changed while this summary was made; nothing was replaced.")
    return shown["ordinal"]

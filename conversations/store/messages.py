"""Messages: appended in order, with their parts, and never touched again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from django.db import DataError, transaction
from django.db.models import F, Max

from conversations import observability
from conversations.cold_storage.cold_texts import cold_texts, until_settled
from conversations.content.large_texts.interception import (
    Interception,
    entries_of,
    has_files,
    moved_texts,
    write_references,
)
from conversations.content.large_texts.restore import whole as put_together
from conversations.errors import Conflict, Invalid, NotFound
from conversations.fast.prepared import prepared
from conversations.fast.records import record
from conversations.files.large_files import LargeFileService
from conversations.models import ContextItem, Conversation, Message, MessagePart
from conversations.policy import LEAST_LARGE_TOKENS
from conversations.signals import messages_appended
from conversations.store.append import APPEND, as_batch, part_rows_of, rows_of
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS, Store
from conversations.store.page_bytes import Page, messages_that_fit
from conversations.store.read import messages_after, parts_of
from conversations.types import (
    AppendedMessage,
    AppendResult,
    ContextItemType,
    Counters,
    MessageRecord,
    NewMessage,
    NewPart,
)


@dataclass(frozen=True)
class MessageStore(Store):
    def append_messages(self, *, conversation_id: int, messages: Sequence[NewMessage]) -> AppendResult:
        """Record messages, with their parts, at the end of the conversation and of its active context: all, or none.

        Durable and searchable on return. A message whose idempotency key is stored already is not written again. A text
        of more than large_file_tokens becomes a file (`moved`), and the message has what stands for it. Raises
        NotFound; Invalid for what cannot be stored; Conflict if a key was used before for another message; Unavailable
        if a file cannot be stored.
        """
        now = datetime.now(UTC)
        message_rows, part_rows = rows_of(messages, tokens=self.tokens, policy=self.policy, now=now)
        if has_files(message_rows, part_rows, limit=LEAST_LARGE_TOKENS):
            return self._append_with_files(conversation_id, messages, message_rows, part_rows, now)
        return self._append(conversation_id, message_rows, part_rows)

    def _append_with_files(
        self,
        conversation_id: int,
        messages: Sequence[NewMessage],
        message_rows: list[dict[str, Any]],
        part_rows: list[dict[str, Any]],
        now: datetime,
    ) -> AppendResult:
        """The same, where something may be too long: bytes to storage, then files and messages in one transaction."""
        conversation = self.scope.conversation(conversation_id)
        limit = self.policy.overridden(conversation.overrides).large_file_tokens
        if not has_files(message_rows, part_rows, limit=limit):
            return self._append(conversation_id, message_rows, part_rows)
        interception = Interception(
            conversation=conversation,
            files=LargeFileService.from_settings(self.scope),
            tokens=self.tokens,
            limit=limit,
        )
        marked = [
            interception.marked(message, token_count=row["token_count"])
            for message, row in zip(messages, message_rows, strict=True)
        ]
        with transaction.atomic():
            settled = [interception.settled(each) for each in marked]
            if any(each.spans or each.named for each in settled):
                message_rows, part_rows = rows_of(
                    [each.message for each in settled],
                    tokens=self.tokens,
                    policy=self.policy,
                    now=now,
                    files=[entries_of(each) for each in settled],
                )
            result = self._append(conversation_id, message_rows, part_rows)
            message_ids = [message.message_id for message in result.messages]
            write_references(settled, message_ids, created=[message.created for message in result.messages])
        moved = (moved_texts(*each) for each in zip(settled, message_ids, strict=True))
        return replace(result, moved=tuple(chain.from_iterable(moved)))

    def _append(
        self, conversation_id: int, message_rows: list[dict[str, Any]], part_rows: list[dict[str, Any]]
    ) -> AppendResult:
        where = (conversation_id, self.scope.workspace_id, MESSAGE_OVERHEAD_TOKENS)
        if conversation_id >= 2**63:
            # Another type of number to PostgreSQL, which would look for another function.
            self.scope.conversation(conversation_id)
        keyed = any(row["idempotency_key"] is not None for row in message_rows)
        try:
            row = prepared(APPEND, (*where, keyed, *as_batch(message_rows, part_rows)))
        except DataError as refused:
            raise Invalid("The database cannot hold one of these values.") from refused
        if row is None or row["message_ids"] is None:
            self.scope.conversation(conversation_id)
            raise NotFound(f"There is no conversation {conversation_id} that you may see.")
        if row["conflicting_key"] is not None:
            observability.CONFLICTS.inc()
            raise Conflict(
                f"The idempotency key {row['conflicting_key']!r} was used before for another message; "
                "nothing was stored. Use a new key for new content."
            )
        return self._appended(conversation_id, message_rows, row)

    def _appended(self, conversation_id: int, message_rows: list[dict[str, Any]], row: dict[str, Any]) -> AppendResult:
        counters = Counters(
            message_count=row["message_count"],
            active_messages=row["active_messages"],
            active_tokens=row["active_tokens"],
            total_tokens=row["total_tokens"],
            rest_until_seq=row["rest_until_seq"],
        )
        messages = tuple(
            record(
                AppendedMessage,
                {
                    "message_id": message_id,
                    "seq": seq,
                    "token_count": given["token_count"],
                    "content_hash": given["content_hash"],
                    "created": created,
                },
            )
            for given, message_id, seq, created in zip(
                message_rows, row["message_ids"], row["seqs"], row["created"], strict=True
            )
        )
        observability.appended(message_rows, messages)
        messages_appended.send(
            sender=MessageStore,
            conversation_id=conversation_id,
            messages=messages,
            counters=counters,
            # The driver leaves jsonb to Django's fields, and no field is asked here.
            overrides={} if row["overrides"] == "{}" else json.loads(row["overrides"]),
        )
        return AppendResult(conversation_id=conversation_id, messages=messages, counters=counters)

    def create_message(self, *, conversation_id: int, message: NewMessage) -> MessageRecord:
        """Record one message and give it back as it is stored."""
        appended = self.append_messages(conversation_id=conversation_id, messages=[message]).messages[0]
        return self.get_message(message_id=appended.message_id)

    @transaction.atomic(savepoint=False)
    def create_message_parts(self, *, message_id: int, parts: Sequence[NewPart]) -> None:
        """Add parts behind those that a message has; they do not change its content, its cost or its chain."""
        try:
            rows = part_rows_of(parts)
        except ValueError as wrong:
            raise Invalid(str(wrong)) from wrong
        # The conversation's row, so that two who add to one message do not take the same place.
        conversation = self.scope.conversation_of(message_id=message_id)
        last = MessagePart.objects.filter(message_id=message_id).aggregate(last=Max("ordinal"))["last"]
        MessagePart.objects.bulk_create(
            MessagePart(
                part_id=f"part_{message_id}_{ordinal}",
                message_id=message_id,
                session_id=conversation.session_id,
                ordinal=ordinal,
                **row,
            )
            for ordinal, row in enumerate(rows, start=0 if last is None else last + 1)
        )

    @transaction.atomic
    def append_context_message(self, *, conversation_id: int, message_id: int) -> None:
        """Show a stored message in the active context, at its place; for one that is shown already, nothing happens.

        Appending does this by itself; this is for a context that has to be put right. Raises Conflict for a message
        that a summary stands for.
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

    def get_message(self, *, message_id: int, whole: bool = False) -> MessageRecord:
        """One message with its parts; NotFound if there is none.

        `whole` puts back, byte for byte, what was too long for it and became a file; Unavailable if that cannot be had.
        """

        def read() -> MessageRecord:
            message = self.scope.message(message_id)
            cold = cold_texts([message.cold_block_id])
            return message.as_record(tuple(parts_of([message_id], cold=cold)[message_id]), cold)

        message = until_settled(read)
        return put_together(message, files=LargeFileService.from_settings(self.scope)) if whole else message

    def list_messages(self, *, conversation_id: int, after_seq: int = 0, limit: int = 100) -> list[MessageRecord]:
        """The messages behind `after_seq`, oldest first, with their parts.

        A page has 8 MiB at most, or one message: where it ends before `limit` because of that, the answer says `more`.
        Their seqs follow each other without a gap, also where a message was erased: a seq that is left out is a message
        whose row is gone from the database, which `lcm check` reports. NotFound if there is no such conversation.
        """
        fitting, more = messages_that_fit(conversation_id=conversation_id, after_seq=after_seq, limit=limit)
        found = messages_after(
            conversation_id, workspace_id=self.scope.workspace_id, after_seq=after_seq, limit=min(limit, fitting)
        )
        if not found:
            # Where there are messages, there is a conversation that may be seen.
            self.scope.conversation(conversation_id)
        return Page(found, more=more and bool(found))

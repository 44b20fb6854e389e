"""Messages: appended in order, with their parts, and never changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain

from django.db import DataError, transaction

from conversations import observability
from conversations.cold_storage.cold_texts import cold_texts, until_settled
from conversations.content.large_texts.interception import (
    Interception,
    Settled,
    entries_of,
    moved_texts,
    write_references,
)
from conversations.content.large_texts.restore import whole as put_together
from conversations.errors import Conflict, Invalid, NotFound
from conversations.fast.records import record
from conversations.files.large_files import LargeFileService
from conversations.signals import messages_appended
from conversations.sql import bigint, first_row
from conversations.store.append import Draft, as_batch, draft_messages
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS, Store
from conversations.store.pages import Page, messages_that_fit
from conversations.store.read import messages_after, parts_of
from conversations.types import AppendedMessage, AppendResult, Counters, MessageRecord, NewMessage

_APPEND = "SELECT * FROM lcm_append_messages(%s, %s, %s, %s, %s, %b, %s)"


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
        drafts = draft_messages(messages, tokens=self.tokens, policy=self.policy, now=now)
        if any(draft.may_need_files for draft in drafts):
            return self._append_with_files(conversation_id, drafts, now)
        return self._append(conversation_id, drafts)

    def _append_with_files(self, conversation_id: int, drafts: Sequence[Draft], now: datetime) -> AppendResult:
        """Append where a text may become a file: bytes go to storage, then files and messages in one transaction."""
        conversation = self.scope.conversation(conversation_id)
        interception = Interception(
            conversation=conversation,
            files=LargeFileService.from_settings(self.scope),
            tokens=self.tokens,
            limit=self.policy.overridden(conversation.overrides).large_file_tokens,
        )
        marked = [interception.marked(draft.message, token_count=draft.token_count) for draft in drafts]
        with transaction.atomic():
            settled = [interception.settled(each) for each in marked]
            drafts = [self._with_files(draft, each, now) for draft, each in zip(drafts, settled, strict=True)]
            result = self._append(conversation_id, drafts)
            message_ids = [message.message_id for message in result.messages]
            write_references(settled, message_ids, created=[message.created for message in result.messages])
        moved = (moved_texts(*each) for each in zip(settled, message_ids, strict=True))
        return replace(result, moved=tuple(chain.from_iterable(moved)))

    def _with_files(self, draft: Draft, settled: Settled, now: datetime) -> Draft:
        if settled.spans:
            [draft] = draft_messages([settled.message], tokens=self.tokens, policy=self.policy, now=now)
        return replace(draft, files=entries_of(settled))

    def _append(self, conversation_id: int, drafts: Sequence[Draft]) -> AppendResult:
        if conversation_id >= 2**63:
            # No bigint: the scope refuses it as it refuses any other id that is not there.
            self.scope.conversation(conversation_id)
        keyed = any(draft.row["idempotency_key"] is not None for draft in drafts)
        where = (bigint(conversation_id), self.scope.workspace_id, MESSAGE_OVERHEAD_TOKENS, keyed)
        try:
            row = first_row(_APPEND, (*where, *as_batch(drafts)))
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
                    "token_count": draft.token_count,
                    "content_hash": draft.row["content_hash"],
                    "created": created,
                },
            )
            for draft, message_id, seq, created in zip(
                drafts, row["message_ids"], row["seqs"], row["created"], strict=True
            )
        )
        observability.appended([draft.row for draft in drafts], messages)
        messages_appended.send(
            sender=MessageStore,
            conversation_id=conversation_id,
            messages=messages,
            counters=counters,
            # The driver leaves jsonb to Django's fields, and no field reads it here.
            overrides=json.loads(row["overrides"]),
        )
        return AppendResult(conversation_id=conversation_id, messages=messages, counters=counters)

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
        """List messages with their parts, oldest first.

        A page has 8 MiB at most, or one message, and may hold fewer messages than `limit` because of that.
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

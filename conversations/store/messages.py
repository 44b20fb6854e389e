"""Messages: appended in order, with their parts, and never changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Self

from django.db import DataError, transaction
from prometheus_client import Counter

from conversations.cold_storage.cold_texts import cold_texts, until_settled
from conversations.content.large_texts.moving import Interception, Settled, write_references
from conversations.content.large_texts.moving import whole as put_together
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS, TokenEstimator
from conversations.errors import Conflict, Invalid, NotFound
from conversations.files.large_files import LargeFileService
from conversations.policy import StorePolicy
from conversations.scope import EVERYTHING, Scope
from conversations.signals import messages_appended
from conversations.sql import bigint, first_row
from conversations.store.append import Draft, as_batch, draft_messages
from conversations.store.pages import Page, messages_that_fit
from conversations.store.read import messages_after, parts_of
from conversations.types import AppendedMessage, AppendResult, Counters, MessageRecord, NewMessage, Role

_APPEND = "SELECT * FROM lcm_append_messages(%s, %s, %s, %s, %s, %b, %s)"

MESSAGES = Counter("lcm_ingest_messages_total", "Messages stored, by role.", ["role"])
TOKENS = Counter("lcm_ingest_tokens_total", "Tokens of the messages stored.")
BYTES = Counter("lcm_ingest_bytes_total", "Bytes of the messages' contents, as UTF-8.")
REPEATS = Counter("lcm_ingest_repeats_total", "Messages sent again under an idempotency key that was stored already.")
CONFLICTS = Counter("lcm_ingest_conflicts_total", "Appends refused: their idempotency key belongs to another message.")

# Shown from the start, as no rate can be computed for a series that begins with its first event.
for _role in Role:
    MESSAGES.labels(_role.value)


@dataclass(frozen=True)
class MessageStore:
    tokens: TokenEstimator
    policy: StorePolicy
    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Self:
        policy = StorePolicy.from_settings()
        return cls(tokens=TokenEstimator(encoding=policy.encoding), policy=policy, scope=scope)

    def append_messages(self, *, conversation_id: int, messages: Sequence[NewMessage]) -> AppendResult:
        """Append messages, with their parts, to the conversation: all, or none.

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
        """Store the bytes of long texts, then files and messages in one transaction."""
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
        moved = (each.moved_texts(message_id) for each, message_id in zip(settled, message_ids, strict=True))
        return replace(result, moved=tuple(chain.from_iterable(moved)))

    def _with_files(self, draft: Draft, settled: Settled, now: datetime) -> Draft:
        if settled.moved:
            [draft] = draft_messages([settled.message], tokens=self.tokens, policy=self.policy, now=now)
        return replace(draft, files=settled.entries)

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
            CONFLICTS.inc()
            raise Conflict(
                f"The idempotency key {row['conflicting_key']!r} was used before for another message; "
                "nothing was stored. Use a new key for new content."
            )
        counters = Counters(**{name: row[name] for name in Counters.__dataclass_fields__})
        messages = tuple(
            AppendedMessage(message_id, seq, draft.token_count, draft.row["content_hash"], created)
            for draft, message_id, seq, created in zip(
                drafts, row["message_ids"], row["seqs"], row["created"], strict=True
            )
        )
        transaction.on_commit(partial(_count, drafts, messages))
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


def _count(drafts: Sequence[Draft], messages: Sequence[AppendedMessage]) -> None:
    """Count an append in the metrics."""
    stored = [draft.row for draft, message in zip(drafts, messages, strict=True) if message.created]
    for role in {row["role"] for row in stored}:
        MESSAGES.labels(role).inc(sum(row["role"] == role for row in stored))
    TOKENS.inc(sum(row["token_count"] for row in stored))
    BYTES.inc(sum(len(row["content"].encode()) for row in stored))
    REPEATS.inc(len(messages) - len(stored))

"""Run one turn of an agent: append new messages and assemble the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from django.db import transaction

from compaction.engine import CompactionEngine
from compaction.hosts.branching import Branches
from conversations.content.lossless_values import require_names
from conversations.errors import StaleHead
from conversations.formats.rendered import MessageFormat
from conversations.models import Conversation
from conversations.scope import EVERYTHING, Scope
from conversations.store.injected import without_injected
from conversations.store.read import seqs_of_keys
from conversations.types import AppendResult, NewMessage
from retrieval.assembler import ContextAssembler
from retrieval.assembly.types import AssembledContext


@dataclass(frozen=True)
class Turn:
    """The result of a turn: the appended messages, if any, and the context."""

    conversation_id: int
    head_seq: int
    appended: AppendResult | None
    context: AssembledContext


@dataclass(frozen=True)
class Turns:
    """Appends messages and assembles the context, in one transaction."""

    branches: Branches
    assembler: ContextAssembler
    engine: CompactionEngine

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Self:
        return cls(
            Branches.from_settings(scope), ContextAssembler.from_settings(scope), CompactionEngine.from_settings(scope)
        )

    def turn(
        self,
        *,
        conversation_id: int,
        messages: Sequence[NewMessage],
        idempotency_key: str | None = None,
        expected_seq: int | None = None,
        head_seq: int | None = None,
        budget: int | None = None,
        query: str | None = None,
        context_format: MessageFormat | str | None = None,
        reserve: int = 0,
        keep_receipt: bool = False,
    ) -> Turn:
        """Append these messages and assemble the context, in one transaction.

        `head_seq` first moves the head to that message, to edit a turn or to answer it again. `idempotency_key` is a
        key for the whole turn: each message without a key of its own gets one derived from it. A repeated turn then
        stores nothing, moves nothing and returns the present context. If the head is at one of these messages already,
        because the response to an earlier turn was lost, it is not moved and the others follow. A given `budget`, less
        `reserve`, becomes the conversation's `model_token_budget`, by which compaction is decided, if it is lower than
        the present one. The errors are those of `append`, `rewind` and `assemble`; any error rolls everything back.
        """
        require_names(idempotency_key=idempotency_key)
        self.assembler.prepare(query)
        new = [_keyed(message, idempotency_key, place) for place, message in enumerate(messages, start=1)]
        store, appended = self.branches.store, None
        with transaction.atomic():
            conversation = store.scope.conversation(conversation_id, locked=True)
            if not _is_stored(conversation, new, head_seq):
                if expected_seq is not None and conversation.head_seq != expected_seq:
                    raise StaleHead(
                        f"The head of conversation {conversation_id} is at seq {conversation.head_seq}, not at"
                        f" {expected_seq}; nothing was stored. Read what is new, then append behind it.",
                        head_seq=conversation.head_seq,
                    )
                if head_seq is not None and conversation.head_seq not in _stored(conversation, new).values():
                    self.branches.move_head(conversation_id=conversation_id, head_seq=head_seq, reason="turn")
            if budget is not None:
                self.engine.lower_budget(conversation, budget - reserve)
            if new:
                appended = store.append_messages(conversation_id=conversation_id, messages=new)
            context = self.assembler.assemble(
                conversation_id=conversation_id,
                budget=budget,
                query=query,
                format=context_format,
                reserve=reserve,
                keep_receipt=keep_receipt,
            )
            head = store.get_conversation(conversation_id=conversation_id).head_seq
        return Turn(conversation_id, head, appended, context)


def _is_stored(conversation: Conversation, messages: Sequence[NewMessage], head_seq: int | None) -> bool:
    """Whether nothing of the turn is left to store: all its idempotency keys exist."""
    left = without_injected(messages).messages
    if messages and not left:
        # LCM itself injected all of these messages, so there is nothing to store. But the head may have to be moved.
        return head_seq in (None, conversation.head_seq)
    keys = {message.idempotency_key for message in left}
    return bool(keys) and None not in keys and len(_stored(conversation, left)) == len(keys)


def _stored(conversation: Conversation, messages: Sequence[NewMessage]) -> dict[str, int]:
    """Return the seqs of the messages that are stored already, by idempotency key."""
    return seqs_of_keys(conversation.pk, (key for each in messages if (key := each.idempotency_key) is not None))


def _keyed(message: NewMessage, key: str | None, place: int) -> NewMessage:
    if key is None or message.idempotency_key is not None:
        return message
    return replace(message, idempotency_key=f"{key}/{place}")

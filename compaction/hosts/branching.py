"""Move the head of a conversation, list its branches, and fork it.

The head is the message that the next one follows; the active path leads to it from the first message. Nothing is
deleted: messages off the path are stored and searchable, and return when the head moves back to their branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest, Now

from compaction.rendering import context_cost_of
from compaction.sources import withheld_items
from conversations.audit import Act, AuditLog
from conversations.content.large_texts.moving import restore_texts
from conversations.errors import Conflict, Invalid, StaleHead, TooLarge
from conversations.files.large_files import LargeFileService
from conversations.formats.foreign_rows import as_it_came
from conversations.models import Conversation, HeadMove
from conversations.scope import EVERYTHING, Scope
from conversations.sql import execute, load, rows
from conversations.store.conversations import ConversationStore
from conversations.store.derived_context import change_context, context_difference
from conversations.store.pages import Page
from conversations.store.paths import Branch, branches_of
from conversations.store.read import files_of, messages_of
from conversations.types import (
    PART_COLUMNS,
    Counters,
    MessageRecord,
    NewMessage,
    NewPart,
    OpenedConversation,
    ParentLink,
)

_SQL = load("conversations/branches/paths.sql")
# A fork appends its copies in batches of this many messages.
COPIED_AT_ONCE = 200
# Maximum number of messages that a fork copies: the copy is one transaction.
MOST_COPIED = 20_000


@dataclass(frozen=True)
class MovedHead:
    """The head before and after a move, and the context that follows it."""

    conversation_id: int
    head_seq: int
    previous_seq: int
    # The number of the move; absent if the head was already there.
    number: int | None
    counters: Counters


@dataclass(frozen=True)
class Branches:
    """Moves the head of a conversation, lists its branches, and forks it."""

    store: ConversationStore

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Branches:
        return cls(ConversationStore.from_settings(scope))

    @transaction.atomic
    def move_head(
        self, *, conversation_id: int, head_seq: int, expected_seq: int | None = None, reason: str = ""
    ) -> MovedHead:
        """Move the head: the next message follows `head_seq`, and the context ends there.

        `head_seq` is an earlier message (for a rewind, an edit or a new answer), a message of another branch, or 0 to
        start over. Nothing is deleted: messages off the active path keep their seqs. A summary that covers such
        messages leaves the context, and its sources that are on the path return to it. Raises NotFound; Invalid if
        there is no message `head_seq`; Conflict `stale_head` if the head is not at `expected_seq`.
        """
        conversation = self.store.scope.conversation(conversation_id, locked=True)
        previous = conversation.head_seq
        if expected_seq is not None and previous != expected_seq:
            raise StaleHead(
                f"The head of conversation {conversation_id} is at seq {previous}, not at {expected_seq}; it was not"
                " moved.",
                head_seq=previous,
            )
        if not 0 <= head_seq < conversation.next_seq:
            raise Invalid(f"head_seq: there is no message {head_seq}; the newest has seq {conversation.next_seq - 1}.")
        number = None
        if head_seq != previous:
            number = self._move(conversation, head_seq, reason)
            conversation.refresh_from_db()
        return MovedHead(conversation_id, conversation.head_seq, previous, number, conversation.counters)

    def _move(self, conversation: Conversation, head_seq: int, reason: str) -> int:
        conversation_id, number = conversation.pk, conversation.moves + 1
        previous = conversation.head_seq
        HeadMove.objects.create(
            conversation=conversation, number=number, at_seq=conversation.next_seq, head_seq=head_seq, reason=reason
        )
        AuditLog(self.store.scope).record(
            Act.MOVE_HEAD,
            workspace_id=conversation.workspace_id,
            conversation_id=conversation_id,
            target=f"move {number}",
            detail={"from": previous, "to": head_seq},
        )
        execute(_SQL["follow_moves"], {"id": conversation_id})
        change_context(context_difference(conversation_id, cost_of=context_cost_of(self.store.tokens)))
        execute(_SQL["count_context"], {"id": conversation_id})
        # The database's clock, never decreasing. Compaction no longer rests, because the context has changed.
        Conversation.objects.filter(pk=conversation_id).update(
            updated_at=Greatest(F("updated_at"), Now()), rest_until_seq=0
        )
        return number

    def list_branches(self, *, conversation_id: int, after_number: int = -1, limit: int = 100) -> list[Branch]:
        """List the branches of a conversation, oldest first.

        A branch holds the messages between one move of the head and the next; the first follows `follows_seq`.
        """
        conversation = self.store.scope.conversation(conversation_id)
        found = [each for each in branches_of(conversation) if each.number > after_number]
        return Page(found[:limit], more=len(found) > limit)

    def messages_on_path(self, *, conversation_id: int) -> Iterator[MessageRecord]:
        """Yield the messages on the active path, oldest first, with their full texts.

        Raises Conflict at a message that is quarantined, or whose text is in a quarantined file.
        """
        conversation = self.store.scope.conversation(conversation_id)
        for message in _messages(conversation, conversation.head_seq):
            yield as_it_came(message)

    @transaction.atomic
    def fork_conversation(
        self, *, conversation_id: int, session_id: str, at_seq: int | None = None, title: str | None = None
    ) -> OpenedConversation:
        """Open a new conversation with a copy of another's messages up to `at_seq`.

        It copies the messages on the path to `at_seq` (default: the head), with their times and idempotency keys. The
        original becomes its parent; later changes of one do not affect the other. A repeated call returns the same
        fork, also without `at_seq` when the original has grown since.
        Raises NotFound; Invalid if there is no message `at_seq`; TooLarge for a path of more than 20,000 messages;
        Conflict `conversation_exists` if another conversation has this `session_id`; Conflict if a copied message is
        quarantined, Conflict `quarantined` if a file with its text is.
        """
        source = self.store.scope.conversation(conversation_id)
        last = source.head_seq if at_seq is None else at_seq
        if not 0 <= last < source.next_seq:
            raise Invalid(f"at_seq: there is no message {last}; the newest has seq {source.next_seq - 1}.")
        store = replace(self.store, scope=replace(self.store.scope, workspace_id=source.workspace_id))
        fork = store.open_conversation(
            session_id=session_id,
            title=title if title is not None else source.title,
            metadata=source.metadata,
            overrides=source.overrides,
            project=None if source.project is None else source.project.name,
        )
        detail = {"of": conversation_id, "at_seq": last}
        if not fork.created:
            acts = AuditLog(store.scope).list_acts(conversation_id=fork.conversation_id, act=Act.FORK, limit=1)
            wanted = {"of": conversation_id} if at_seq is None else detail
            if any(wanted.items() <= act.detail.items() for act in acts):
                return fork
            raise Conflict(f"session_id: {session_id[:80]!r} exists; choose another.", code="conversation_exists")
        [(count,)] = rows(_SQL["count_on_path"], {"id": conversation_id, "seq": last})
        if count > MOST_COPIED:
            raise TooLarge(
                f"at_seq: the path to message {last} has {count:,} messages, and a fork copies at most {MOST_COPIED:,}."
                " Fork at an earlier message."
            )
        messages = map(_copy, _messages(source, last))
        while batch := list(islice(messages, COPIED_AT_ONCE)):
            store.append_messages(conversation_id=fork.conversation_id, messages=batch)
        store.open_conversation(session_id=session_id, parent_session_id=source.session_id, parent_link=ParentLink.FORK)
        AuditLog(store.scope).record(
            Act.FORK, conversation_id=fork.conversation_id, target=f"conv_{fork.conversation_id}", detail=detail
        )
        record = store.get_conversation(conversation_id=fork.conversation_id)
        return OpenedConversation(**vars(record), created=True)


def _messages(source: Conversation, last: int) -> Iterator[MessageRecord]:
    """Yield the messages on the path to a seq, with their texts as appended."""
    files = LargeFileService.from_settings()
    after = 0
    withheld = withheld_items(source.pk) if source.quarantined else ()
    while found := rows(_SQL["messages_on_path"], {"id": source.pk, "seq": last, "after": after, "limit": 100}):
        ids = [message_id for message_id, _ in found]
        needed = files_of(ids)
        for message_id in ids:
            for id in (f"msg_{message_id}", *(entry[0] for entry in needed.get(message_id, ()))):
                if id in withheld:
                    raise Conflict(f"{id} is quarantined; repair or release it, or fork before msg_{message_id}.")
        for message in messages_of(ids):
            yield restore_texts(message, files=files) if needed.get(message.message_id) else message
        after = found[-1][1]


def _copy(message: MessageRecord) -> NewMessage:
    # A part that compaction added belongs to a summary, and summaries are not copied.
    parts = as_it_came(message).parts
    return NewMessage(
        role=message.role,
        content=message.content,
        parts=tuple(NewPart(**{name: getattr(part, name) for name in PART_COLUMNS}) for part in parts),
        author=message.author,
        created_at=message.created_at,
        idempotency_key=message.idempotency_key,
        metadata=message.metadata,
    )

"""Recognize messages of a file that were stored once and erased since.

An erasure removes a message's text and idempotency key, but the file of the host still has the message. Without this,
the next import would store the erased text again. Role and hash of the text remain, so a message of the file that is
not stored is compared with the erased ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Self

from django.db.models import Exists, OuterRef

from conversations.content import hashing
from conversations.content.flattening import flattened
from conversations.models import FileReference, Message
from conversations.policy import LEAST_LARGE_TOKENS
from conversations.store.injected import without_injected
from conversations.types import NewMessage


class _Erased(NamedTuple):
    seq: int
    role: str
    content_hash: bytes
    # Whether a text of the message was moved to a file, so that the hash is of the element in its place.
    is_cut: bool


@dataclass
class ErasedMessages:
    """The erased messages of a conversation that are not yet found in the file."""

    unmatched: list[_Erased] = field(default_factory=list)

    @classmethod
    def of(cls, conversation_id: int) -> Self:
        """Read the erased messages of a conversation, oldest first."""
        cut = FileReference.objects.filter(message_id=OuterRef("pk"), start_at__isnull=False)
        rows = Message.objects.filter(conversation_id=conversation_id, erased_by__isnull=False).order_by("seq")
        found = rows.annotate(is_cut=Exists(cut)).values_list("seq", "role", "content_hash", "is_cut")
        return cls([_Erased(seq, role, bytes(digest), is_cut) for seq, role, digest, is_cut in found])

    def take(self, message: NewMessage) -> int | None:
        """Return the seq of the oldest erased message that this one can be, or None.

        Each erased message is returned once. Call it for all messages of the file that are not stored, in their order.
        """
        kept = without_injected([message]).messages if self.unmatched else ()
        if not kept:
            return None
        content = kept[0].content if kept[0].content is not None else flattened(kept[0].parts)
        digest = hashing.content_hash(content)
        for place, each in enumerate(self.unmatched):
            is_same = each.content_hash == digest or each.is_cut and len(content) > LEAST_LARGE_TOKENS
            if each.role == message.role and is_same:
                return self.unmatched.pop(place).seq
        return None

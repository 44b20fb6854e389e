"""Whose data a caller may touch: the one place where a query is narrowed to a workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from django.db.models import Model, QuerySet

from conversations.errors import NotFound

if TYPE_CHECKING:
    from conversations.models import Conversation, LargeFile, Message, Summary

M = TypeVar("M", bound=Model)

# Which way from a model to its workspace.
_PATHS = {"Workspace": "workspace_id", "Conversation": "workspace_id"}


@dataclass(frozen=True)
class Scope:
    """One workspace, or, with None, all of them: for workers and for the operator at the machine."""

    workspace_id: int | None = None

    def narrow(self, rows: QuerySet[M]) -> QuerySet[M]:
        """Only the rows that this scope may see."""
        if self.workspace_id is None:
            return rows
        path = _PATHS.get(rows.model.__name__, "conversation__workspace_id")
        return rows.filter(**{path: self.workspace_id})

    def conversation(self, conversation_id: int, *, locked: bool = False) -> Conversation:
        """NotFound alike for a conversation that is not there and one that is somebody else's.

        `locked` holds the row until the transaction ends: whoever changes what it counts takes it first.
        """
        from conversations.models import Conversation

        rows = Conversation.objects.select_for_update(no_key=True) if locked else Conversation.objects.all()
        return self._one(rows, "conversation", conversation_id, conversation_id=conversation_id)

    def conversation_of(self, *, message_id: int) -> Conversation:
        """The conversation that a message is in, its row held until the transaction ends."""
        from conversations.models import Conversation

        rows = Conversation.objects.select_for_update(no_key=True, of=("self",))
        return self._one(rows, "message", f"msg_{message_id}", messages__message_id=message_id)

    def message(self, message_id: int) -> Message:
        from conversations.models import Message

        return self._one(Message.objects.all(), "message", f"msg_{message_id}", message_id=message_id)

    def summary(self, summary_id: str) -> Summary:
        from conversations.models import Summary

        return self._one(Summary.objects.all(), "summary", summary_id, summary_id=summary_id)

    def file(self, file_id: str) -> LargeFile:
        from conversations.models import LargeFile

        return self._one(LargeFile.objects.all(), "file", file_id, file_id=file_id)

    def _one(self, rows: QuerySet[M], noun: str, shown: Any, **lookup: Any) -> M:
        rows = self.narrow(rows.filter(**lookup))
        if hasattr(rows, "readable"):
            rows = rows.readable()
        # A number past a bigint or a text with a NUL cannot be any row's id, and PostgreSQL would refuse the question.
        found = None if _unaskable(*lookup.values()) else rows.first()
        if found is None:
            raise NotFound(f"There is no {noun} {str(shown)[:80]!r} that you may see.")
        return found


def _unaskable(*values: Any) -> bool:
    return any(
        not -(2**63) <= value < 2**63 if isinstance(value, int) else "\x00" in value or not value.isprintable()
        for value in values
    )

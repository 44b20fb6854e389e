"""Which files there are: of one conversation, or of all of a workspace, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from conversations.models import LargeFile
from conversations.scope import Scope
from conversations.store.base import EVERYTHING
from conversations.store.paging import behind
from conversations.types import LargeFileRecord


@dataclass(frozen=True)
class FileListing:
    """Lists what `LargeFileService` keeps."""

    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Self:
        return cls(scope=scope)

    def list_files(
        self, *, conversation_id: int | None = None, before: str | None = None, limit: int = 50
    ) -> list[LargeFileRecord]:
        """The files of a conversation, or of all, the newest first; `before` goes on behind a file of an earlier page.

        What was erased is listed, too, as what it was. NotFound if there is no such conversation or file.
        """
        files = self.scope.narrow(LargeFile.objects.order_by("-created_at", "-file_id"))
        if conversation_id is not None:
            self.scope.conversation(conversation_id)
            files = files.filter(conversation_id=conversation_id)
        if before is not None:
            last = self.scope.file(before)
            files = files.filter(behind(field="created_at", moment=last.created_at, key=last.file_id))
        return [file.as_record() for file in files[:limit]]

"""List the files of a conversation or a workspace, in pages."""

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
    """Lists the files that `LargeFileService` stores."""

    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Self:
        return cls(scope=scope)

    def list_files(
        self, *, conversation_id: int | None = None, before: str | None = None, limit: int = 50
    ) -> list[LargeFileRecord]:
        """List the files of a conversation, or of all, newest first.

        Erased files are listed without their names. NotFound if the conversation or file does not exist.
        """
        files = self.scope.narrow(LargeFile.objects.order_by("-created_at", "-file_id"))
        if conversation_id is not None:
            self.scope.conversation(conversation_id)
            files = files.filter(conversation_id=conversation_id)
        if before is not None:
            last = self.scope.file(before)
            files = files.filter(behind(field="created_at", moment=last.created_at, key=last.file_id))
        return [file.as_record() for file in files[:limit]]

"""The bytes of files, as a ledger carries them: out of the storage, and back into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from django.core.files.base import File

from conversations.files.large_files import LargeFileService
from conversations.files.shared_locks import SharedBytes
from conversations.files.storage import storing
from conversations.scope import Scope


@dataclass(frozen=True)
class FileBytes:
    """The files of one workspace."""

    scope: Scope
    workspace_id: int

    def read(self, file_id: str, offset: int, length: int) -> bytes:
        """These bytes of a file; NotFound or Unavailable if they are not to be had."""
        return LargeFileService.from_settings(self.scope).read(file_id=file_id, offset=offset, length=length)

    def keep(self, content_hash: str | None, content: IO[bytes] | None) -> str:
        """Put the bytes where those with this hash belong, unless they are there, and say where that is.

        Without bytes, where they would be: the workspace may have them from another conversation.
        """
        if content_hash is None:
            return ""
        path = f"{self.workspace_id}/{content_hash[:2]}/{content_hash}"
        storage = LargeFileService.from_settings(self.scope).storage
        if content is not None:
            with storing("A file cannot be stored"):
                if not storage.exists(path):
                    storage.save(path, File(content))
            SharedBytes(storage, path).hold()
        return path

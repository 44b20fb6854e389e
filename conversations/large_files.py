"""Large artifacts: their bytes in storage, their descriptions in the database, found by id."""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Self

from django.core.files.base import File
from django.core.files.storage import Storage, default_storage
from django.db import transaction

from conversations.append import checked_name
from conversations.errors import Invalid, Unavailable
from conversations.exploration import Glance
from conversations.models import Conversation, LargeFile
from conversations.scope import Scope
from conversations.store.base import EVERYTHING
from conversations.types import LargeFileRecord

CHUNK_BYTES = 1024 * 1024
# What is larger than this waits on the disk, not in memory, until its hash is known.
SPOOL_BYTES = 8 * CHUNK_BYTES


@dataclass(frozen=True)
class LargeFileService:
    """Keeps what is too large for a context, once for each workspace, and gives it back by the byte."""

    storage: Storage
    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Self:
        return cls(storage=default_storage, scope=scope)

    def store(
        self,
        *,
        conversation_id: int,
        content: bytes | IO[bytes],
        file_name: str | None = None,
        mime_type: str | None = None,
    ) -> LargeFileRecord:
        """Keep a file of a conversation; the same file once more is the same record.

        The name is a label: where the bytes lie, their hash decides. Raises NotFound, Invalid for a name that cannot be
        kept, and Unavailable, with no record left, if the storage refuses the bytes.
        """
        try:
            checked_name("file_name", file_name)
            checked_name("mime_type", mime_type)
        except ValueError as wrong:
            raise Invalid(str(wrong)) from wrong
        conversation = self.scope.conversation(conversation_id)
        glance, digest = Glance(), hashlib.sha256()
        with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as spool:
            for chunk in _chunks(content):
                glance.add(chunk)
                digest.update(chunk)
                spool.write(chunk)
            path = _path(conversation.workspace_id, digest.hexdigest())
            self._keep(path, spool)
        # Bytes first: a row without bytes would be a lie, bytes without a row are found by the next who stores them.
        return self._describe(
            LargeFile(
                conversation=conversation,
                file_name=file_name,
                mime_type=mime_type,
                byte_size=glance.byte_size,
                storage_uri=path,
                exploration_summary=glance.summary(file_name=file_name, mime_type=mime_type),
                content_hash=digest.digest(),
            )
        )

    def get(self, *, file_id: str) -> LargeFileRecord:
        """What is known of a file; NotFound if there is none."""
        return self.scope.file(file_id).as_record()

    def read(self, *, file_id: str, offset: int = 0, length: int | None = None) -> bytes:
        """These bytes of a file, fewer where it ends; NotFound, or Unavailable if the storage cannot give them."""
        if offset < 0 or (length is not None and length < 0):
            raise Invalid("offset and length count bytes, so neither can be negative.")
        row = self.scope.file(file_id)
        try:
            with self.storage.open(row.storage_uri) as file:
                # A disk seeks past the end of a file; other storages refuse to.
                file.seek(min(offset, row.byte_size or 0))
                return bytes(file.read() if length is None else file.read(length))
        except OSError as refusal:
            raise Unavailable(f"The bytes of {file_id} cannot be read: {refusal.strerror or refusal}.") from refusal

    def _keep(self, path: str, content: IO[bytes]) -> None:
        try:
            if not self.storage.exists(path):
                self.storage.save(path, File(content))
        except OSError as refusal:
            raise Unavailable(f"The file cannot be stored: {refusal.strerror or refusal}.") from refusal

    @transaction.atomic
    def _describe(self, file: LargeFile) -> LargeFileRecord:
        # Two who store the same file at once queue up here, and the second finds the first one's row.
        Conversation.objects.select_for_update(no_key=True).get(pk=file.conversation_id)
        same = LargeFile.objects.filter(
            conversation_id=file.conversation_id,
            content_hash=file.content_hash,
            file_name=file.file_name,
            mime_type=file.mime_type,
        ).first()
        if same is not None:
            return same.as_record()
        file.file_id = f"file_{secrets.token_hex(8)}"
        file.save(force_insert=True)
        return file.as_record()


def _path(workspace_id: int, content_hash: str) -> str:
    # A workspace's own, though equal bytes may lie in another: nobody can probe what others have stored.
    return f"{workspace_id}/{content_hash[:2]}/{content_hash}"


def _chunks(content: bytes | IO[bytes]) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    while chunk := content.read(CHUNK_BYTES):
        if not isinstance(chunk, bytes):
            raise Invalid("The content must be bytes, or a file opened to read bytes.")
        yield chunk

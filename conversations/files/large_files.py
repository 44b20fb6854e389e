"""Store large files: bytes in storage, descriptions in the database."""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, BinaryIO, Self, cast

import pglock
from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import Storage, default_storage
from django.db import transaction
from django.utils.module_loading import import_string

from conversations.content.lossless_values import require_names
from conversations.errors import Conflict, TooLarge
from conversations.files.reading import FileBytes, FileText, file_text, open_stored
from conversations.files.storage import STORAGE_FAILURES, storing
from conversations.models import Conversation, LargeFile
from conversations.policy import FilePolicy
from conversations.scope import EVERYTHING, Scope
from conversations.store.pages import newest_first
from conversations.store.withheld import readable_files, require_readable
from conversations.types import LargeFileRecord

CHUNK_BYTES = 1024 * 1024
# Files larger than this are collected on disk, not in memory, until their hash is known.
SPOOL_BYTES = 8 * CHUNK_BYTES


class BytesErased(Conflict):
    """The bytes were erased between storing them and writing their row."""

    code = "bytes_erased"
    retryable = True


@dataclass(frozen=True)
class LargeFileService:
    """Stores files that are too large for a context; equal bytes once per workspace."""

    storage: Storage
    policy: FilePolicy = FilePolicy()
    scope: Scope = EVERYTHING
    # Whether the bytes of quarantined files can be read as well: for full exports, and for auditors.
    with_quarantined: bool = False

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Self:
        return cls(storage=default_storage, policy=FilePolicy.from_settings(), scope=scope)

    def store(
        self,
        *,
        conversation_id: int,
        content: bytes | IO[bytes],
        file_name: str | None = None,
        mime_type: str | None = None,
    ) -> LargeFileRecord:
        """Store a file of a conversation.

        Storing the same file again returns the same record. The name is only a label; the path of the bytes is their
        hash. Raises NotFound; Invalid for a name that cannot be stored; TooLarge `file_too_large`; Unavailable if the
        storage fails, and then no record is made; BytesErased, retryable, if the same content is being erased.
        """
        require_names(file_name=file_name, mime_type=mime_type)
        conversation = self.scope.conversation(conversation_id)
        return self.describe(self.keep(conversation, content, file_name=file_name, mime_type=mime_type)).as_record()

    def keep(
        self,
        conversation: Conversation,
        content: bytes | IO[bytes] | Iterator[bytes],
        *,
        file_name: str | None = None,
        mime_type: str | None = None,
        expected_hash: bytes | None = None,
    ) -> LargeFile:
        """Write the bytes to storage and return their unsaved row.

        Raises Conflict if the bytes' hash is not the expected one. The bytes are written first: a row must not name
        missing bytes. Bytes without a row are reused by the next file with this content.
        """
        # Imported here: it loads a dozen parsers, and most processes never store a file.
        from conversations.files.exploration.explorer import explore, mime_type_of
        from conversations.files.exploration.glance import Seen

        digest = hashlib.sha256()
        with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as spool:
            seen = Seen(cast(BinaryIO, spool), file_name or "", mime_type or "")
            for chunk in _chunks(content):
                seen.add(chunk)
                if seen.byte_size > self.policy.max_file_bytes:
                    raise too_large(self.policy)
                digest.update(chunk)
                spool.write(chunk)
            if expected_hash not in (None, digest.digest()):
                raise Conflict(
                    f"The bytes have the SHA-256 {digest.hexdigest()}, not the announced one.", code="hash_differs"
                )
            path = path_of_bytes(conversation.workspace_id, digest.hexdigest())
            self._save(path, spool)
            summary = explore(seen, gist=import_string(settings.FILE_GIST) if settings.FILE_GIST else None)
        return LargeFile(
            conversation=conversation,
            file_name=file_name,
            mime_type=mime_type_of(seen),
            byte_size=seen.byte_size,
            storage_uri=path,
            exploration_summary=summary,
            content_hash=digest.digest(),
        )

    @transaction.atomic(savepoint=False)
    def describe(self, file: LargeFile) -> LargeFile:
        """Save the row of stored bytes, or return the existing row of the same file.

        Raises BytesErased, retryable, if the last file with this content was erased since the bytes were stored.
        """
        # Concurrent writers of the same file wait here, and the second finds the first one's row.
        Conversation.objects.select_for_update(no_key=True).get(pk=file.conversation_id)
        same = LargeFile.objects.filter(
            conversation_id=file.conversation_id,
            content_hash=file.content_hash,
            file_name=file.file_name,
            mime_type=file.mime_type,
            erased_by=None,
        ).first()
        if same is not None:
            return same
        lock_bytes(self.storage, file.storage_uri)
        file.file_id = f"file_{secrets.token_hex(8)}"
        file.save(force_insert=True)
        return file

    def discard(self, paths: Iterable[str]) -> None:
        """Remove the bytes that a refused write has stored, unless a file needs them."""
        for path in paths:
            with suppress(*STORAGE_FAILURES):
                remove_bytes_unless_needed(self.storage, path)

    def get(self, *, file_id: str) -> LargeFileRecord:
        """Return the record of a file; raises NotFound.

        The record of a quarantined file comes without its name and description.
        """
        [file] = readable_files([self.scope.file(file_id).as_record()])
        return file

    def read(self, *, file_id: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return bytes of a file; at its end, fewer than requested.

        Raises NotFound; NotFound `erased`; Conflict `quarantined`; Unavailable if the storage fails.
        """
        row = self._row(file_id)
        with open_stored(self.storage, row) as file, storing(f"The bytes of {file_id} cannot be read"):
            # A disk can seek past the end of a file; other storages cannot.
            file.seek(min(offset, file.size))
            return bytes(file.read() if length is None else file.read(length))

    def read_lines(self, *, file_id: str, first_line: int = 1, line_count: int = 200) -> FileText:
        """Return lines of a file as text, as many as fit into a response.

        Lines are counted from 1. `next_line` is the line to continue at, absent at the end. `is_cut` marks a line that
        is longer than a response, and `note` says if there is no such line. Bytes that are not UTF-8 become replacement
        characters. Raises NotFound; NotFound `erased`; Conflict `quarantined`; Unavailable if the storage fails.
        """
        row = self._row(file_id)
        with open_stored(self.storage, row) as file, storing(f"The lines of {file_id} cannot be read"):
            return file_text(file_id, file, first_line=first_line, line_count=line_count)

    def stream(self, *, file_id: str, offset: int = 0, length: int | None = None) -> FileBytes:
        """Stream the bytes of a file, with its record; raises as `read` does."""
        row = self._row(file_id)
        file = open_stored(self.storage, row)
        offset = min(offset, file.size)
        rest = file.size - offset
        return FileBytes(row.as_record(), offset, rest if length is None else min(length, rest), file.size, file)

    def list_files(
        self, *, conversation_id: int | None = None, before: str | None = None, limit: int = 50
    ) -> list[LargeFileRecord]:
        """List the files of a conversation, or of all conversations, newest first.

        Erased and quarantined files are listed without their names. Raises NotFound if there is no such conversation.
        """
        files = self.scope.filter_rows(LargeFile.objects.all(), conversation_id=conversation_id)
        return readable_files([file.as_record() for file in newest_first(files, before, self.scope.file)[:limit]])

    def _row(self, file_id: str) -> LargeFile:
        row = self.scope.file(file_id)
        if not self.with_quarantined:
            require_readable(file_id)
        return row

    def _save(self, path: str, content: IO[bytes]) -> None:
        with storing("The file cannot be stored"):
            if not self.storage.exists(path):
                content.seek(0)
                self.storage.save(path, File(content))


def path_of_bytes(workspace_id: int, content_hash: str) -> str:
    """The path of stored bytes; the hash is in hexadecimal digits."""
    return f"{workspace_id}/{content_hash[:2]}/{content_hash}"


def lock_bytes(storage: Storage, path: str) -> None:
    """Lock stored bytes against removal until the transaction ends.

    Raises BytesErased if the bytes no longer exist. Identical bytes are stored once per workspace. Transactions that
    add rows for them take a shared lock; an erasure takes an exclusive lock.
    """
    _lock(path, shared=True)
    with storing("The file cannot be stored"):
        is_there = storage.exists(path)
    if not is_there:
        raise BytesErased("The same content was erased at this moment, so nothing was stored; store it again.")


@transaction.atomic
def remove_bytes_unless_needed(storage: Storage, path: str) -> None:
    """Remove stored bytes unless a row that is not erased needs them."""
    _lock(path, shared=False)
    # Checked under the lock, after its other holders have committed: a file that was stored after the erasure counts.
    if not LargeFile.objects.filter(storage_uri=path, erased_by=None).exists():
        storage.delete(path)


def _lock(path: str, *, shared: bool) -> None:
    # A lock of the transaction: it is also released when the connection breaks.
    pglock.advisory(f"lcm.bytes.{path}", shared=shared, xact=True).acquire()


def too_large(policy: FilePolicy) -> TooLarge:
    return TooLarge(
        f"A file may have at most {policy.max_file_bytes:,} bytes (LCM_MAX_FILE_BYTES).",
        code="file_too_large",
        max_file_bytes=policy.max_file_bytes,
    )


def _chunks(content: bytes | IO[bytes] | Iterator[bytes]) -> Iterator[bytes]:
    if isinstance(content, bytes):
        return iter([content])
    if isinstance(content, Iterator) and not hasattr(content, "read"):
        return content
    return iter(partial(content.read, CHUNK_BYTES), b"")

"""Upload files in chunks, in any order, with retries, across restarts."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

import structlog
from django.core.files.base import ContentFile
from django.db import IntegrityError, transaction
from django.utils import timezone

from conversations.content.lossless_values import require_names
from conversations.errors import Conflict, Invalid, NotFound, Unavailable
from conversations.files.large_files import LargeFileService, too_large
from conversations.files.storage import WholeFileStorage, storing
from conversations.models import Upload, UploadChunk
from conversations.models.columns import record_of
from conversations.scope import EVERYTHING, Scope
from conversations.sql import load, rows
from conversations.store.pages import newest_first
from conversations.store.withheld import quarantined_files
from conversations.types import LargeFileRecord, UploadRecord

logger = structlog.get_logger(__name__)

MOST_MISSING = 100
SWEPT_AT_ONCE = 100
# Maximum number of chunks of an upload: bounds the time to find missing chunks.
MOST_CHUNKS = 100_000
_PIECE = 1024 * 1024
_PROGRESS = load("conversations/files.sql")["progress"]


@dataclass(frozen=True)
class UploadService:
    """Receives files in chunks, with one chunk in memory at a time."""

    files: LargeFileService

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Self:
        return cls(files=LargeFileService.from_settings(scope))

    def begin(
        self,
        *,
        conversation_id: int,
        byte_size: int,
        file_name: str | None = None,
        mime_type: str | None = None,
        sha256: str | None = None,
    ) -> UploadRecord:
        """Begin an upload; the response gives the chunk size (`chunk_bytes`).

        Raises NotFound, Invalid, and TooLarge `file_too_large` for more than LCM_MAX_FILE_BYTES.
        """
        require_names(file_name=file_name, mime_type=mime_type)
        conversation = self.files.scope.conversation(conversation_id)
        if byte_size > self.files.policy.max_file_bytes:
            raise too_large(self.files.policy)
        upload = Upload.objects.create(
            upload_id=f"upload_{secrets.token_hex(8)}",
            conversation=conversation,
            file_name=file_name,
            mime_type=mime_type,
            byte_size=byte_size,
            chunk_bytes=max(self.files.policy.upload_chunk_bytes, -(-byte_size // MOST_CHUNKS)),
            content_hash=None if sha256 is None else bytes.fromhex(sha256),
        )
        return self.get_upload(upload_id=upload.upload_id)

    def put_chunk(self, *, upload_id: str, offset: int, content: bytes) -> UploadRecord:
        """Store one chunk, in any order, with retries allowed.

        The response lists the missing chunks. Raises NotFound; Invalid for an offset where no chunk begins, or for a
        chunk of the wrong length; Conflict if other bytes are already stored at this offset, or if the upload is
        finished; Unavailable if the storage fails.
        """
        upload = self._upload(upload_id)
        number, wrong = divmod(offset, upload.chunk_bytes)
        if wrong or number >= upload.chunk_count:
            raise Invalid(
                f"No chunk begins at {offset}: chunks begin at multiples of {upload.chunk_bytes} below "
                f"{upload.byte_size}."
            )
        if len(content) != upload.size_of(number):
            raise Invalid(f"The chunk at {offset} must have {upload.size_of(number)} bytes, not {len(content)}.")
        chunk = UploadChunk(upload=upload, number=number, content_hash=hashlib.sha256(content).digest())
        known = UploadChunk.objects.filter(upload=upload, number=number).first()
        if known is None:
            if upload.file_id is not None:
                raise Conflict(f"The upload is already finished: its file is {upload.file_id}.")
            self._keep(chunk, content)
            known = self._write(chunk)
        if bytes(known.content_hash) != bytes(chunk.content_hash):
            raise Conflict(f"Other bytes are already stored at {offset}; abort the upload and begin another.")
        Upload.objects.filter(pk=upload_id).update(touched_at=timezone.now())
        return self.get_upload(upload_id=upload_id)

    def get_upload(self, *, upload_id: str) -> UploadRecord:
        """Show the progress of an upload and its missing chunks. Raises NotFound."""
        [record] = self._records([self._upload(upload_id)])
        return record

    def list_uploads(
        self, *, conversation_id: int, before_upload: str | None = None, limit: int = 100
    ) -> list[UploadRecord]:
        """List the unfinished uploads of a conversation, newest first.

        Raises NotFound if there is no such conversation.
        """
        self.files.scope.conversation(conversation_id)
        waiting = Upload.objects.filter(conversation_id=conversation_id, file=None)
        return self._records(list(newest_first(waiting, before_upload, self._upload)[:limit]))

    def finish(self, *, upload_id: str) -> LargeFileRecord:
        """Join all chunks into a file; finishing again returns the same file.

        Raises NotFound; Conflict while chunks are missing; Conflict `hash_differs` if the SHA-256 is not the announced
        one (abort the upload and start again); Unavailable if the storage fails.
        """
        chunks = list(self._upload(upload_id).chunks.order_by("number"))
        # Read after the chunks, which another call removes when it finishes the upload.
        upload = self._upload(upload_id)
        if upload.file_id is None:
            missing = sorted(set(range(upload.chunk_count)) - {chunk.number for chunk in chunks})
            if missing:
                raise Conflict(
                    f"Missing chunks: {len(missing):,} of {upload.chunk_count:,}. Send them, then finish the upload.",
                    missing=[number * upload.chunk_bytes for number in missing[:MOST_MISSING]],
                )
            self._join(upload, chunks)
            upload = self._upload(upload_id)
        return self.files.get(file_id=str(upload.file_id))

    def abort(self, *, upload_id: str) -> UploadRecord:
        """Delete an upload and its chunks, and return its progress.

        The file of a finished upload stays. Raises NotFound if there is no such upload, and Unavailable if the storage
        fails.
        """
        upload = self._upload(upload_id)
        [record] = self._records([upload])
        self._forget(upload)
        return record

    def sweep(self) -> int:
        """Delete uploads without progress for `upload_hours`; return their number."""
        limit = timezone.now() - timedelta(hours=self.files.policy.upload_hours)
        left = Upload.objects.filter(touched_at__lt=limit).order_by("touched_at")[:SWEPT_AT_ONCE]
        count = 0
        for upload in left:
            with _left_to_the_sweep():
                self._forget(upload)
                count += 1
        unfinished = 0
        if isinstance(self.files.storage, WholeFileStorage):
            unfinished = self.files.storage.sweep(older_than_seconds=self.files.policy.upload_hours * 3600)
        if count or unfinished:
            logger.info("uploads_swept", uploads=count, unfinished_files=unfinished)
        return count

    def _upload(self, upload_id: str) -> Upload:
        named = self.files.scope.narrow(Upload.objects.filter(pk=upload_id))
        found = named.first() if upload_id.isprintable() else None
        if found is None:
            raise NotFound(f"There is no upload {upload_id[:80]!r} that you may see; unfinished uploads expire.")
        return found

    def _records(self, uploads: Sequence[Upload]) -> list[UploadRecord]:
        """Return the progress of uploads, in their order."""
        values = {
            "ids": [upload.upload_id for upload in uploads],
            "lasts": [upload.chunk_count - 1 for upload in uploads],
            "most_missing": MOST_MISSING,
        }
        found = zip(uploads, rows(_PROGRESS, values), strict=True)
        records = [self._with_progress(upload, received, lacking) for upload, (received, lacking) in found]
        withheld = quarantined_files(upload.file_id for upload in uploads if upload.file_id)
        return [replace(each, file_name=None) if each.file_id in withheld else each for each in records]

    def _with_progress(self, upload: Upload, received: int, lacking: Sequence[int]) -> UploadRecord:
        missing = 0 if upload.file_id else upload.chunk_count - received
        return record_of(
            UploadRecord,
            upload,
            chunks_received=upload.chunk_count - missing,
            chunks_missing=missing,
            missing=tuple(number * upload.chunk_bytes for number in lacking) if missing else (),
            expires_at=upload.touched_at + timedelta(hours=self.files.policy.upload_hours),
            sha256=None if upload.content_hash is None else bytes(upload.content_hash).hex(),
        )

    def _keep(self, chunk: UploadChunk, content: bytes) -> None:
        # The bytes are stored first, so that a recorded chunk always exists.
        with storing("The chunk cannot be stored"):
            if not self.files.storage.exists(chunk.path):
                self.files.storage.save(chunk.path, ContentFile(content))

    def _write(self, chunk: UploadChunk) -> UploadChunk:
        """Record the chunk, or return one that was recorded at the same time."""
        place = {"upload_id": chunk.upload_id, "number": chunk.number}
        try:
            known, _ = UploadChunk.objects.get_or_create(**place, defaults={"content_hash": chunk.content_hash})
        except IntegrityError:
            self._remove(chunk.path)
            raise NotFound(f"The upload {chunk.upload_id!r} was deleted.") from None
        if bytes(known.content_hash) != bytes(chunk.content_hash):
            self._remove(chunk.path)
        return known

    def _join(self, upload: Upload, chunks: list[UploadChunk]) -> None:
        """Join the chunks into one file; concurrent calls get the same file."""
        kept = self.files.keep(
            upload.conversation,
            self._pieces(upload, chunks),
            file_name=upload.file_name,
            mime_type=upload.mime_type,
            expected_hash=None if upload.content_hash is None else bytes(upload.content_hash),
        )
        with transaction.atomic():
            file = self.files.describe(kept)
            Upload.objects.filter(pk=upload.pk).update(file=file, touched_at=timezone.now())
            UploadChunk.objects.filter(upload=upload).delete()
        with _left_to_the_sweep():
            self._remove_bytes(upload)

    def _pieces(self, upload: Upload, chunks: list[UploadChunk]) -> Iterator[bytes]:
        for chunk in chunks:
            # Fails if another call has just finished the upload; a retry returns that file.
            with (
                storing(f"The chunk at {chunk.number * upload.chunk_bytes} cannot be read"),
                self.files.storage.open(chunk.path) as file,
            ):
                yield from file.chunks(_PIECE)

    def _forget(self, upload: Upload) -> None:
        # The row goes after the bytes: the sweep finds it if the process dies between. Then again, for a chunk that
        # came meanwhile.
        self._remove_bytes(upload)
        Upload.objects.filter(pk=upload.pk).delete()
        self._remove_bytes(upload)

    def _remove_bytes(self, upload: Upload) -> None:
        """Remove all chunks in storage, recorded or not; raises Unavailable."""
        storage, directory = self.files.storage, f"uploads/{upload.upload_id}"
        with storing("The chunks cannot be removed"), suppress(FileNotFoundError):
            for name in storage.listdir(directory)[1]:
                storage.delete(f"{directory}/{name}")
            storage.delete(directory)

    def _remove(self, path: str) -> None:
        with _left_to_the_sweep(), storing("The chunk cannot be removed"):
            self.files.storage.delete(path)


@contextmanager
def _left_to_the_sweep() -> Iterator[None]:
    """Log a storage failure; a later sweep tries again."""
    try:
        yield
    except Unavailable as refusal:
        logger.warning("chunks_left_behind", error=refusal.code)

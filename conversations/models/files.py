"""Large files, messages' references to them, and uploads."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Func, Q
from django.db.models.functions import Now

from conversations.models.columns import record_of
from conversations.models.conversation import Conversation
from conversations.models.message import Message
from conversations.types import LargeFileRecord


class LargeFile(models.Model):
    """An artifact too large for a context: bytes in storage, description here."""

    file_id = models.TextField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="large_files")
    file_name = models.TextField(null=True)  # noqa: DJ001 (the specification's columns)
    mime_type = models.TextField(null=True)  # noqa: DJ001
    byte_size = models.BigIntegerField(null=True)
    storage_uri = models.TextField()
    exploration_summary = models.TextField(null=True)  # noqa: DJ001
    created_at = models.DateTimeField(db_default=Now())
    content_hash = models.BinaryField(null=True)
    erased_by = models.ForeignKey("conversations.AuditEntry", models.RESTRICT, null=True, related_name="+")

    class Meta:
        db_table = "large_files"
        indexes: ClassVar = [models.Index(fields=["conversation", "created_at"], name="large_files_conv_idx")]

    def __str__(self) -> str:
        return self.file_id

    def as_record(self) -> LargeFileRecord:
        return record_of(LargeFileRecord, self, quarantined=False)


class FileReference(models.Model):
    """A file that a message refers to, and the position of its element, if any.

    The row is written with the message. The database refuses to change or remove it.
    """

    reference_id = models.BigAutoField(primary_key=True)
    message = models.ForeignKey(Message, models.CASCADE, related_name="file_references")
    file = models.ForeignKey(LargeFile, models.RESTRICT, related_name="references")
    part_ordinal = models.IntegerField(null=True)
    field = models.TextField()
    start_at = models.IntegerField(null=True)
    length = models.IntegerField(null=True)

    class Meta:
        db_table = "file_references"
        indexes: ClassVar = [
            models.Index(fields=["message"], name="file_references_message_idx"),
            models.Index(fields=["file"], name="file_references_file_idx"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(start_at__isnull=True, length__isnull=True)
                | Q(start_at__isnull=False, length__isnull=False, start_at__gte=0, length__gt=0),
                name="file_references_stand_somewhere",
            ),
        ]

    def __str__(self) -> str:
        return f"msg_{self.message_id} {self.field} {self.file_id}"


class Upload(models.Model):
    """A file that arrives in chunks."""

    upload_id = models.TextField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="uploads")
    file_name = models.TextField(null=True)  # noqa: DJ001 (absent is not empty)
    mime_type = models.TextField(null=True)  # noqa: DJ001
    byte_size = models.BigIntegerField()
    chunk_bytes = models.IntegerField()
    content_hash = models.BinaryField(null=True)
    file = models.ForeignKey(LargeFile, models.CASCADE, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Func(function="clock_timestamp"))
    touched_at = models.DateTimeField(db_default=Func(function="clock_timestamp"))

    class Meta:
        db_table = "uploads"
        indexes: ClassVar = [
            models.Index(fields=["conversation"], name="uploads_conversation_idx"),
            models.Index(fields=["touched_at"], name="uploads_touched_idx"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(byte_size__gte=0, chunk_bytes__gt=0), name="uploads_have_a_size"),
        ]

    def __str__(self) -> str:
        return self.upload_id

    @property
    def chunk_count(self) -> int:
        return -(-self.byte_size // self.chunk_bytes)

    def size_of(self, number: int) -> int:
        """Return the number of bytes of the chunk with this number."""
        return min(self.chunk_bytes, self.byte_size - number * self.chunk_bytes)


class UploadChunk(models.Model):
    """A received chunk; its bytes are in storage until the upload is finished."""

    upload_chunk_id = models.BigAutoField(primary_key=True)
    upload = models.ForeignKey(Upload, models.CASCADE, related_name="chunks")
    number = models.IntegerField()
    content_hash = models.BinaryField()

    class Meta:
        db_table = "upload_chunks"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["upload", "number"], name="upload_chunks_are_kept_once"),
            models.CheckConstraint(condition=Q(number__gte=0), name="upload_chunks_are_numbered_from_zero"),
        ]

    def __str__(self) -> str:
        return f"{self.upload_id} {self.number}"

    @property
    def path(self) -> str:
        """The path of the chunk's bytes; it contains their hash."""
        return f"uploads/{self.upload_id}/{self.number}-{bytes(self.content_hash).hex()}"

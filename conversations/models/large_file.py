from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from conversations.models.conversation import Conversation
from conversations.types import LargeFileRecord


class LargeFile(models.Model):
    """An artifact too large for a context: its bytes lie in storage, its description here."""

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
        return LargeFileRecord(
            file_id=self.file_id,
            conversation_id=self.conversation_id,
            file_name=self.file_name,
            mime_type=self.mime_type,
            byte_size=self.byte_size,
            storage_uri=self.storage_uri,
            exploration_summary=self.exploration_summary,
            created_at=self.created_at,
            content_hash=bytes(self.content_hash).hex() if self.content_hash is not None else None,
            erased_by_id=self.erased_by_id,
        )

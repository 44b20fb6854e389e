"""What retention keeps of its own: how far a conversation has gone cold, and erasures that were asked for."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from conversations.models import AuditEntry, Conversation


class ColdProgress(models.Model):
    """Up to which message a conversation has been moved to the cold tier; what cannot be moved was passed over."""

    conversation = models.OneToOneField(Conversation, models.CASCADE, primary_key=True, related_name="cold_progress")
    through_seq = models.BigIntegerField()
    moved_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "cold_progress"
        verbose_name_plural = "cold progress"

    def __str__(self) -> str:
        return f"{self.conversation_id}: through {self.through_seq}"


class Erasure(models.Model):
    """An erasure that was previewed, and, once somebody has confirmed it, carried out. It holds no text."""

    erasure_id = models.TextField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="erasures")
    requested_by = models.TextField()
    requested_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    message_ids = ArrayField(models.BigIntegerField())
    file_ids = ArrayField(models.TextField())
    # Whether it is all of the conversation, its title and metadata included.
    is_whole = models.BooleanField(default=False, db_default=False)
    # Of everything that would be touched, as it was then.
    fingerprint = models.TextField()
    confirmation = models.TextField()
    act = models.ForeignKey(AuditEntry, models.RESTRICT, null=True, related_name="+")
    # Where bytes lie that nobody refers to any more, until they are removed.
    bytes_left = ArrayField(models.TextField(), default=list, db_default=[])

    class Meta:
        db_table = "erasures"
        indexes: ClassVar = [
            models.Index(fields=["conversation", "-requested_at"], name="erasures_conv_idx"),
            models.Index(fields=["erasure_id"], condition=~models.Q(bytes_left=[]), name="erasures_unfinished_idx"),
        ]

    def __str__(self) -> str:
        return self.erasure_id

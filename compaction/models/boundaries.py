"""Where a host that compacts by itself has cut its context."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from compaction.types import BoundaryRecord
from conversations.models import Conversation


class CompactionBoundary(models.Model):
    """One compaction by a host, under the host's name for it."""

    boundary_id = models.BigAutoField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="boundaries")
    host_reference = models.TextField()
    last_seq = models.BigIntegerField()
    recorded_at = models.DateTimeField(db_default=Now())
    metadata = models.JSONField(default=dict)

    class Meta:
        db_table = "compaction_boundaries"
        verbose_name_plural = "compaction boundaries"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["conversation", "host_reference"], name="compaction_boundaries_have_one_name_each"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.host_reference} at {self.last_seq}"

    def as_record(self) -> BoundaryRecord:
        return BoundaryRecord(
            conversation_id=self.conversation_id,
            host_reference=self.host_reference,
            last_seq=self.last_seq,
            recorded_at=self.recorded_at,
            metadata=self.metadata,
        )

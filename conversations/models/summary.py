from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Now

from conversations.models.columns import EnumField, SearchableQuerySet, record_of
from conversations.models.conversation import Conversation
from conversations.models.message import Message
from conversations.types import Level, SummaryKind, SummaryRecord


class Summary(models.Model):
    """A text that replaces older messages in the active context. Immutable."""

    summary_id = models.TextField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="summaries")
    kind = EnumField(SummaryKind, "summary_kind")
    content = models.TextField()
    token_count = models.IntegerField()
    created_at = models.DateTimeField(db_default=Now())
    content_tsv = models.GeneratedField(
        expression=Func("content", "conversation", "last_seq", function="lcm_tsv_at"),
        output_field=SearchVectorField(),
        db_persist=True,
    )
    file_ids = models.JSONField(default=list)
    depth = models.IntegerField()
    first_seq = models.BigIntegerField()
    last_seq = models.BigIntegerField()
    earliest_at = models.DateTimeField()
    latest_at = models.DateTimeField()
    source_count = models.IntegerField()
    descendant_count = models.IntegerField()
    source_tokens = models.BigIntegerField()
    level = models.TextField(choices=[(level.value, level.value) for level in Level])
    model = models.TextField()
    quality = models.JSONField(default=dict)
    token_counter = models.TextField()
    summary_hash = models.BinaryField()
    run_id = models.TextField()
    retention = models.FloatField(null=True)
    is_degraded = models.BooleanField(default=False, db_default=False)
    supersedes = models.OneToOneField("self", models.RESTRICT, null=True, related_name="superseded_by")
    prompt_hash = models.TextField(default="", db_default="")
    tokens_in = models.IntegerField(default=0, db_default=0)
    tokens_out = models.IntegerField(default=0, db_default=0)
    duration_ms = models.IntegerField(default=0, db_default=0)
    erased_by = models.ForeignKey("conversations.AuditEntry", models.RESTRICT, null=True, related_name="+")

    objects = SearchableQuerySet.as_manager()

    class Meta:
        db_table = "summaries"
        verbose_name_plural = "summaries"
        indexes: ClassVar = [
            models.Index(fields=["conversation", "created_at"], name="summaries_conv_created_idx"),
            GinIndex(fields=["content_tsv"], name="summaries_tsv_gin_idx"),
            models.Index(fields=["conversation", "first_seq", "last_seq"], name="summaries_conv_range_idx"),
            models.Index(fields=["conversation", "last_seq"], name="summaries_conv_last_idx"),
            models.Index(fields=["conversation"], condition=Q(is_degraded=True), name="summaries_degraded_idx"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(kind="leaf", depth=0) | (~Q(kind="leaf") & ~Q(depth=0)),
                name="summaries_of_messages_are_leaves",
            ),
            models.CheckConstraint(
                condition=Q(first_seq__gte=1, first_seq__lte=F("last_seq")), name="summaries_cover_a_range"
            ),
            models.CheckConstraint(
                condition=Q(level__in=[level.value for level in Level]), name="summaries_know_their_level"
            ),
        ]

    def __str__(self) -> str:
        return self.summary_id

    def as_record(self) -> SummaryRecord:
        return record_of(
            SummaryRecord, self, kind=SummaryKind(self.kind), level=Level(self.level), file_ids=tuple(self.file_ids)
        )


class SummaryMessage(models.Model):
    """A message that a summary was made from."""

    pk = models.CompositePrimaryKey("summary_id", "message_id")
    summary = models.ForeignKey(Summary, models.CASCADE, related_name="message_links")
    message = models.ForeignKey(Message, models.RESTRICT, related_name="summary_links")
    ordinal = models.IntegerField()

    class Meta:
        db_table = "summary_messages"

    def __str__(self) -> str:
        return f"{self.summary_id} <- msg_{self.message_id}"


class SummaryParent(models.Model):
    """A summary that a condensed summary was made from.

    The specification's column for the source is `parent_summary_id`; we call the two source and derived.
    """

    pk = models.CompositePrimaryKey("summary_id", "source_id")
    summary = models.ForeignKey(Summary, models.CASCADE, related_name="source_links")
    source = models.ForeignKey(Summary, models.RESTRICT, related_name="derived_links", db_column="parent_summary_id")
    ordinal = models.IntegerField()

    class Meta:
        db_table = "summary_parents"
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(summary=F("source")), name="summary_parents_are_others"),
        ]

    def __str__(self) -> str:
        return f"{self.summary_id} <- {self.source_id}"

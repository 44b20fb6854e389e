from __future__ import annotations

from typing import ClassVar, Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import Func, Q
from django.db.models.functions import Now

from conversations.models.columns import EnumField, ExactJSONField, SearchableQuerySet
from conversations.models.conversation import Conversation
from conversations.types import PartType, Role


class MessageQuerySet(SearchableQuerySet):
    def uncovered(self) -> Self:
        """Filter to messages that are a source of no summary."""
        return self.filter(summary_links__isnull=True)


class Message(models.Model):
    """One message, verbatim. Only operations in the audit log may change its texts."""

    message_id = models.BigAutoField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="messages")
    seq = models.BigIntegerField()
    role = EnumField(Role, "message_role")
    content = models.TextField()
    token_count = models.IntegerField()
    created_at = models.DateTimeField(db_default=Now())
    content_tsv = models.GeneratedField(
        expression=Func("content", "conversation", "seq", function="lcm_tsv_at"),
        output_field=SearchVectorField(),
        db_persist=True,
    )
    recorded_at = models.DateTimeField(db_default=Func(function="clock_timestamp"))
    author = models.TextField(null=True)  # noqa: DJ001 (absent is not empty)
    idempotency_key = models.TextField(null=True)  # noqa: DJ001 (absent is not empty)
    metadata = models.JSONField(default=dict)
    exact = ExactJSONField(null=True)
    token_counter = models.TextField()
    chained_parts = models.IntegerField(default=0)
    content_hash = models.BinaryField()
    entry_hash = models.BinaryField()
    metadata_hash = models.BinaryField(null=True)
    record_hash = models.BinaryField(null=True)
    chain_hash = models.BinaryField()
    cold_block = models.ForeignKey("conversations.ColdBlock", models.RESTRICT, null=True, related_name="messages")
    erased_by = models.ForeignKey("conversations.AuditEntry", models.RESTRICT, null=True, related_name="+")

    objects = MessageQuerySet.as_manager()

    class Meta:
        db_table = "messages"
        indexes: ClassVar = [
            models.Index(fields=["conversation", "seq"], name="messages_conv_seq_idx"),
            GinIndex(fields=["content_tsv"], name="messages_tsv_gin_idx"),
            models.Index(fields=["content_hash"], name="messages_content_hash_idx"),
            models.Index(fields=["conversation", "seq"], name="messages_system_idx", condition=Q(role="system")),
            models.Index(fields=["conversation"], name="messages_erased_idx", condition=Q(erased_by__isnull=False)),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["conversation", "seq"], name="messages_conversation_id_seq_key"),
            models.UniqueConstraint(
                fields=["conversation", "idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
                name="messages_take_an_idempotency_key_once",
            ),
            models.CheckConstraint(condition=Q(seq__gte=1), name="messages_are_numbered_from_one"),
            models.CheckConstraint(condition=Q(token_count__gte=0), name="messages_cost_no_less_than_nothing"),
        ]

    def __str__(self) -> str:
        return f"msg_{self.message_id}"


class MessagePart(models.Model):
    """One typed piece of a message: text, a tool call, its result, a patch, ..."""

    part_id = models.TextField(primary_key=True)
    message = models.ForeignKey(Message, models.CASCADE, related_name="parts")
    session_id = models.TextField()
    part_type = EnumField(PartType, "message_part_type")
    ordinal = models.IntegerField()
    text_content = models.TextField(null=True)  # noqa: DJ001 (the specification's columns are all nullable)
    is_ignored = models.BooleanField(null=True)
    is_synthetic = models.BooleanField(null=True)
    tool_call_id = models.TextField(null=True)  # noqa: DJ001
    tool_name = models.TextField(null=True)  # noqa: DJ001
    tool_status = models.TextField(null=True)  # noqa: DJ001
    tool_input = models.JSONField(null=True)
    tool_output = models.TextField(null=True)  # noqa: DJ001
    tool_error = models.TextField(null=True)  # noqa: DJ001
    tool_title = models.TextField(null=True)  # noqa: DJ001
    patch_hash = models.TextField(null=True)  # noqa: DJ001
    patch_files = ArrayField(models.TextField(), null=True)
    file_mime = models.TextField(null=True)  # noqa: DJ001
    file_name = models.TextField(null=True)  # noqa: DJ001
    file_url = models.TextField(null=True)  # noqa: DJ001
    subtask_prompt = models.TextField(null=True)  # noqa: DJ001
    subtask_desc = models.TextField(null=True)  # noqa: DJ001
    subtask_agent = models.TextField(null=True)  # noqa: DJ001
    step_reason = models.TextField(null=True)  # noqa: DJ001
    step_cost = models.DecimalField(null=True, max_digits=1000, decimal_places=500)
    step_tokens_in = models.IntegerField(null=True)
    step_tokens_out = models.IntegerField(null=True)
    snapshot_hash = models.TextField(null=True)  # noqa: DJ001
    compaction_auto = models.BooleanField(null=True)
    metadata = models.JSONField(null=True)
    exact = ExactJSONField(null=True)
    part_hash = models.BinaryField()

    class Meta:
        db_table = "message_parts"
        indexes: ClassVar = [
            models.Index(fields=["message"], name="message_parts_message_idx"),
            models.Index(fields=["part_type"], name="message_parts_type_idx"),
            # A partial index: most parts call no tool.
            models.Index(
                fields=["tool_name", "message"],
                condition=models.Q(tool_name__isnull=False),
                name="message_parts_tool_idx",
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["message", "ordinal"], name="message_parts_message_id_ordinal_key"),
        ]

    def __str__(self) -> str:
        return self.part_id

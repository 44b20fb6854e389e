"""The audit log, cold blocks and quarantines."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Func, Q

from conversations.models.columns import record_of
from conversations.models.conversation import Conversation, Workspace
from conversations.types import AuditRecord


class AuditEntry(models.Model):
    """One operation in the audit log. The database refuses to change or remove it.

    The table also has the transaction's id: the database allows changes to texts only in that transaction.
    """

    audit_id = models.BigAutoField(primary_key=True)
    recorded_at = models.DateTimeField(db_default=Func(function="clock_timestamp"))
    workspace = models.ForeignKey(Workspace, models.RESTRICT, null=True, related_name="+")
    conversation = models.ForeignKey(Conversation, models.RESTRICT, null=True, related_name="+")
    actor = models.TextField()
    act = models.TextField()
    target = models.TextField(default="")
    detail = models.JSONField(default=dict)

    class Meta:
        db_table = "audit_log"
        verbose_name_plural = "audit entries"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "audit_id"], name="audit_log_workspace_idx"),
            models.Index(fields=["conversation", "audit_id"], name="audit_log_conversation_idx"),
            models.Index(fields=["target", "audit_id"], name="audit_log_target_idx"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(actor="") & ~Q(act=""), name="audit_log_names_who_and_what"),
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.act} {self.target}"

    def as_record(self) -> AuditRecord:
        return record_of(AuditRecord, self)


class AuditLink(models.Model):
    """One link of the audit log's hash chain, written by the database at commit."""

    number = models.BigIntegerField(primary_key=True)
    entry = models.OneToOneField(AuditEntry, models.RESTRICT, db_column="audit_id", related_name="link")
    chain_hash = models.BinaryField()

    class Meta:
        db_table = "audit_chain"
        constraints: ClassVar = [models.CheckConstraint(condition=Q(number__gte=1), name="audit_chain_counts_from_one")]

    def __str__(self) -> str:
        return f"{self.number}: act {self.entry_id}"


class AuditHead(models.Model):
    """The length and the last hash of the audit log's chain: one row."""

    head_id = models.SmallIntegerField(primary_key=True, default=1, db_default=1)
    number = models.BigIntegerField(db_default=0)
    chain_hash = models.BinaryField(db_default=b"")

    class Meta:
        db_table = "audit_head"
        constraints: ClassVar = [models.CheckConstraint(condition=Q(head_id=1), name="audit_head_is_one_row")]

    def __str__(self) -> str:
        return f"{self.number} acts"


class ColdBlock(models.Model):
    """The texts of a range of messages and their parts, compressed together."""

    cold_block_id = models.BigAutoField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.RESTRICT, related_name="cold_blocks")
    first_seq = models.BigIntegerField()
    last_seq = models.BigIntegerField()
    message_count = models.IntegerField()
    packed = models.BinaryField()
    packed_hash = models.BinaryField()
    bytes_before = models.BigIntegerField()
    created_at = models.DateTimeField(db_default=Func(function="clock_timestamp"))

    class Meta:
        db_table = "cold_blocks"
        indexes: ClassVar = [models.Index(fields=["conversation", "first_seq"], name="cold_blocks_conv_idx")]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(first_seq__gte=1, first_seq__lte=F("last_seq"), message_count__gte=1),
                name="cold_blocks_cover_a_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id}: {self.first_seq} to {self.last_seq}"


class Quarantine(models.Model):
    """A damaged row that is withheld from models; the record stays after a release."""

    quarantine_id = models.BigAutoField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.RESTRICT, related_name="quarantines")
    target = models.TextField()
    reason = models.TextField()
    created_at = models.DateTimeField(db_default=Func(function="clock_timestamp"))
    released_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "quarantines"
        indexes: ClassVar = [models.Index(fields=["conversation"], name="quarantines_conv_idx")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["target"], condition=Q(released_at__isnull=True), name="quarantines_hold_a_thing_once"
            ),
        ]

    def __str__(self) -> str:
        return self.target

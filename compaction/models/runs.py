"""What compaction keeps of its own work."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Value

from compaction.types import Outcome, Reason, RunRecord
from conversations.models import Conversation


class CompactionRun(models.Model):
    """One execution of compaction: why, when, and what it came to."""

    run_id = models.TextField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="compaction_runs")
    job = models.ForeignKey("compaction.CompactionJob", models.SET_NULL, null=True, related_name="runs")
    reason = models.TextField(choices=[(reason.value, reason.value) for reason in Reason])
    outcome = models.TextField(choices=[(outcome.value, outcome.value) for outcome in Outcome])
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    tokens_before = models.BigIntegerField()
    tokens_after = models.BigIntegerField()
    leaf_summaries = models.IntegerField(default=0)
    condensed_summaries = models.IntegerField(default=0)
    redone_summaries = models.IntegerField(default=0, db_default=0)
    # The figures behind the outcome, such as those of the significance gate.
    details = models.JSONField(default=dict, db_default=Value("{}", models.JSONField()))

    class Meta:
        db_table = "compaction_runs"
        indexes: ClassVar = [
            models.Index(fields=["conversation", "-started_at"], name="compaction_runs_conv_idx"),
        ]

    def __str__(self) -> str:
        return self.run_id

    def as_record(self) -> RunRecord:
        return RunRecord(
            run_id=self.run_id,
            conversation_id=self.conversation_id,
            reason=Reason(self.reason),
            outcome=Outcome(self.outcome),
            started_at=self.started_at,
            finished_at=self.finished_at,
            tokens_before=self.tokens_before,
            tokens_after=self.tokens_after,
            leaf_summaries=self.leaf_summaries,
            condensed_summaries=self.condensed_summaries,
            redone_summaries=self.redone_summaries,
            job_id=self.job_id,
            details=self.details,
        )

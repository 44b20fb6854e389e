"""The record of each run of compaction."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models
from django.db.models import Count, F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce

from compaction.types import Outcome, Reason, RunRecord
from conversations.models import Conversation, Summary


class CompactionRunQuerySet(models.QuerySet):
    def with_record_fields(self) -> Self:
        """With all that `as_record` needs, in one statement."""
        # By the conversation, too: its degraded summaries are few, and indexed.
        degraded = Summary.objects.filter(
            conversation_id=OuterRef("conversation_id"), is_degraded=True, run_id=OuterRef("run_id")
        )
        counted = degraded.order_by().values("run_id").annotate(count=Count("pk")).values("count")
        return self.select_related("conversation").annotate(
            degraded_summaries=Coalesce(Subquery(counted, output_field=models.IntegerField()), 0)
        )


class CompactionRun(models.Model):
    """One execution of compaction: why, when, and what it came to.

    `tokens_before` is what the context cost when the run read it; `tokens_after`, what that same context costs with the
    run's summaries in it. What was appended meanwhile is in neither.
    """

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

    objects = CompactionRunQuerySet.as_manager()

    class Meta:
        db_table = "compaction_runs"
        indexes: ClassVar = [
            models.Index(fields=["conversation", "-started_at"], name="compaction_runs_conv_idx"),
            models.Index(fields=["-started_at", "-run_id"], name="compaction_runs_started_idx"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                # A summary that is made again may be longer than the one before it; any other is shorter than its
                # sources.
                condition=Q(tokens_before__gte=0, tokens_after__gte=0)
                & (Q(tokens_after__lte=F("tokens_before")) | Q(redone_summaries__gt=0)),
                name="compaction_runs_add_up",
            ),
        ]

    def __str__(self) -> str:
        return self.run_id

    def as_record(self) -> RunRecord:
        """The run as a record, with what `with_record_fields` has read."""
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
            title=str(self.conversation),
            degraded_summaries=getattr(self, "degraded_summaries", 0),
        )

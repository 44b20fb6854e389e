"""What compaction keeps of its own work: its runs, and the jobs that ask for them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from compaction.types import JobRecord, JobState, Outcome, Reason, RunRecord
from conversations.models import Conversation


class CompactionJob(models.Model):
    """A piece of work that somebody must do. The queue may lose a message; this row is not lost.

    A worker claims the row, and holds it by renewing a lease. `fence` counts the claims: whoever holds an older number
    has lost the job, and what it still writes is refused.
    """

    job_id = models.BigAutoField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="compaction_jobs")
    reason = models.TextField(choices=[(reason.value, reason.value) for reason in Reason])
    state = models.TextField(choices=[(state.value, state.value) for state in JobState], default=JobState.QUEUED)
    requested_at = models.DateTimeField(db_default=Now())
    run_after = models.DateTimeField(db_default=Now())
    leased_until = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    fence = models.IntegerField(default=0)
    attempts = models.IntegerField(default=0)
    last_error = models.TextField(default="")

    class Meta:
        db_table = "compaction_jobs"
        indexes: ClassVar = [
            models.Index(
                fields=["run_after"], condition=Q(state__in=["queued", "leased"]), name="compaction_jobs_open_idx"
            ),
        ]
        constraints: ClassVar = [
            # Wishes for the same conversation fall together; one more may wait while a job is at work.
            models.UniqueConstraint(
                fields=["conversation"], condition=Q(state="queued"), name="compaction_jobs_wait_once_per_conversation"
            ),
        ]

    def __str__(self) -> str:
        return f"job {self.job_id} ({self.state})"

    def as_record(self) -> JobRecord:
        return JobRecord(
            job_id=self.job_id,
            conversation_id=self.conversation_id,
            reason=Reason(self.reason),
            state=JobState(self.state),
            requested_at=self.requested_at,
            attempts=self.attempts,
            finished_at=self.finished_at,
            run_ids=tuple(self.runs.order_by("-started_at").values_list("run_id", flat=True)),
        )


class CompactionRun(models.Model):
    """One execution of compaction: why, when, and what it came to."""

    run_id = models.TextField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="compaction_runs")
    job = models.ForeignKey(CompactionJob, models.SET_NULL, null=True, related_name="runs")
    reason = models.TextField(choices=[(reason.value, reason.value) for reason in Reason])
    outcome = models.TextField(choices=[(outcome.value, outcome.value) for outcome in Outcome])
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    tokens_before = models.BigIntegerField()
    tokens_after = models.BigIntegerField()
    leaf_summaries = models.IntegerField(default=0)
    condensed_summaries = models.IntegerField(default=0)

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
            job_id=self.job_id,
        )

"""The jobs that request compaction."""

from __future__ import annotations

from operator import attrgetter
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from compaction.types import JobRecord, JobState, Reason
from conversations.models import Conversation

_started_at = attrgetter("started_at")


class CompactionJob(models.Model):
    """A request to compact: the row is the job, the task queue only wakes workers.

    A worker claims the row, and holds it by renewing a lease. `fence` counts the claims: a worker with an older number
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
    # The id of the first request in the log; empty for LCM's own requests.
    request_id = models.TextField(default="", db_default="")

    class Meta:
        db_table = "compaction_jobs"
        indexes: ClassVar = [
            models.Index(
                fields=["run_after"], condition=Q(state__in=["queued", "leased"]), name="compaction_jobs_open_idx"
            ),
            models.Index(fields=["finished_at"], condition=Q(state="failed"), name="compaction_jobs_failed_idx"),
        ]
        constraints: ClassVar = [
            # Requests for one conversation are merged; one more may be queued while a job is leased.
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
            # In Python, so that the runs of many jobs can be read at once.
            run_ids=tuple(run.run_id for run in sorted(self.runs.all(), key=_started_at, reverse=True)),
            title=str(self.conversation),
            run_after=self.run_after,
            leased_until=self.leased_until,
            last_error=self.last_error,
        )

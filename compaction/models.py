"""The tables of compaction: jobs, runs, plans, hosts' boundaries, and models."""

from __future__ import annotations

from operator import attrgetter
from typing import ClassVar, Self

from django.db import models
from django.db.models import Count, F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce, Now

from compaction.history.models import HistoryJob, SessionSummary, SessionSummaryChild, SessionSummaryMemory
from compaction.types import BoundaryRecord, JobRecord, JobState, Outcome, Reason, RunRecord
from conversations.models import Conversation, Summary
from conversations.models.columns import record_of

__all__ = [
    "CompactionBoundary",
    "CompactionJob",
    "CompactionPlan",
    "CompactionRun",
    "HistoryJob",
    "ModelEndpoint",
    "SessionSummary",
    "SessionSummaryChild",
    "SessionSummaryMemory",
]

_started_at = attrgetter("started_at")


class CompactionJob(models.Model):
    """A request to compact: the row is the job, the task queue only wakes workers.

    A worker claims the row, and holds it by renewing a lease. `fence` counts the claims: a worker with an older number
    has lost the job, and its writes are refused.
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
    # The `request_id`, as in the log, of the first request; empty for LCM's own requests.
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
        return record_of(
            JobRecord,
            self,
            reason=Reason(self.reason),
            state=JobState(self.state),
            # Sorted in Python, so that the runs of many jobs can be prefetched.
            run_ids=tuple(run.run_id for run in sorted(self.runs.all(), key=_started_at, reverse=True)),
            title=str(self.conversation),
        )


class CompactionRunQuerySet(models.QuerySet):
    def with_record_fields(self) -> Self:
        """Select everything that `as_record` needs, in one statement."""
        # The condition on the conversation uses the index of its degraded summaries.
        degraded = Summary.objects.filter(
            conversation_id=OuterRef("conversation_id"), is_degraded=True, run_id=OuterRef("run_id")
        )
        counted = degraded.order_by().values("run_id").annotate(count=Count("pk")).values("count")
        return self.select_related("conversation").annotate(
            degraded_summaries=Coalesce(Subquery(counted, output_field=models.IntegerField()), 0)
        )


class CompactionRun(models.Model):
    """One compaction run: its reason, times, outcome and counts.

    `tokens_before` is the size of the context when the run read it; `tokens_after`, of the same context with the run's
    summaries in it. Messages appended meanwhile count in neither.
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
    # The measurements that led to the outcome, such as those of the significance gate.
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
                # A regenerated summary may be longer than the one before it. Any other summary is shorter than its
                # sources.
                condition=Q(tokens_before__gte=0, tokens_after__gte=0)
                & (Q(tokens_after__lte=F("tokens_before")) | Q(redone_summaries__gt=0)),
                name="compaction_runs_add_up",
            ),
        ]

    def __str__(self) -> str:
        return self.run_id

    def as_record(self) -> RunRecord:
        """Convert a run that `with_record_fields` has read to a record."""
        return record_of(
            RunRecord,
            self,
            reason=Reason(self.reason),
            outcome=Outcome(self.outcome),
            title=str(self.conversation),
            degraded_summaries=getattr(self, "degraded_summaries", 0),
        )


class CompactionPlanQuerySet(models.QuerySet):
    def waiting(self) -> Self:
        """Filter to plans that wait for a worker to execute them."""
        return self.filter(requested_at__isnull=False, executed_at__isnull=True, refusal="")


class CompactionPlan(models.Model):
    """A dry run: its steps in order, and the context that they were made for."""

    plan_id = models.TextField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="compaction_plans")
    created_at = models.DateTimeField(db_default=Now())
    # The context when the plan was made: its last seq, its tokens, and the hash of the items to replace.
    last_seq = models.BigIntegerField()
    tokens_before = models.BigIntegerField()
    tokens_expected = models.BigIntegerField()
    context_hash = models.TextField()
    summarizer = models.TextField()
    policy = models.JSONField()
    steps = models.JSONField()
    # Counts of messages and items in the context before and after; and the summaries' calls, tokens and cost.
    figures = models.JSONField()
    # When background execution was requested, and the error code if it was refused. The row itself is the job.
    requested_at = models.DateTimeField(null=True)
    refusal = models.TextField(default="", db_default="")
    executed_at = models.DateTimeField(null=True)
    run = models.ForeignKey("compaction.CompactionRun", models.SET_NULL, null=True, related_name="plans")

    objects = CompactionPlanQuerySet.as_manager()

    class Meta:
        db_table = "compaction_plans"
        indexes: ClassVar = [
            models.Index(fields=["conversation", "-created_at"], name="compaction_plans_conv_idx"),
            models.Index(
                fields=["requested_at"],
                condition=Q(requested_at__isnull=False, executed_at__isnull=True, refusal=""),
                name="compaction_plans_waiting_idx",
            ),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(tokens_expected__gte=0, tokens_expected__lte=F("tokens_before")),
                name="compaction_plans_add_up",
            ),
        ]

    def __str__(self) -> str:
        return self.plan_id


class CompactionBoundary(models.Model):
    """One compaction by an agent program (host), with the host's name for it."""

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
        return record_of(BoundaryRecord, self)


class ModelEndpoint(models.Model):
    """The circuit breaker and spend guard of one model.

    No key, prompt or answer is stored here.
    """

    name = models.TextField(primary_key=True)
    # The circuit breaker: open until `open_until`, then half-open, with one probing call at a time.
    consecutive_failures = models.IntegerField(default=0, db_default=0)
    open_until = models.DateTimeField(null=True)
    probing_until = models.DateTimeField(null=True)
    last_failure = models.TextField(default="", db_default="")
    last_failure_at = models.DateTimeField(null=True)
    last_success_at = models.DateTimeField(null=True)
    # The vendor's name of the model that refused a temperature. Another model, once configured, gets one again.
    temperature_refused_by = models.TextField(default="", db_default="")
    # The spend guard: calls and tokens since the window began.
    window_started_at = models.DateTimeField(db_default=Now())
    window_calls = models.IntegerField(default=0, db_default=0)
    window_tokens = models.BigIntegerField(default=0, db_default=0)
    # Totals since the endpoint was first used.
    calls = models.BigIntegerField(default=0, db_default=0)
    failures = models.BigIntegerField(default=0, db_default=0)
    tokens_in = models.BigIntegerField(default=0, db_default=0)
    tokens_out = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "model_endpoints"

    def __str__(self) -> str:
        return self.name

"""Jobs: queued requests to compact a conversation, each claimed by one worker."""

from __future__ import annotations

from dataclasses import replace

import structlog
from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Now
from django.dispatch import Signal

from compaction.models import CompactionJob, CompactionRun
from compaction.policy import CompactionPolicy
from compaction.types import CompactionDecision, JobState, Outcome, Reason
from conversations import sql
from conversations.models import Conversation
from conversations.work.queue import Lease, WorkQueue, WorkState

# A job can be claimed, now or after a delay. sender=None, job_id: int, delay_seconds: float
job_due = Signal()

# It runs at appends under pressure, so a request that is queued already costs a look and no write.
_REQUEST = sql.load("compaction/jobs.sql")["request_job"]


def wake(job_id: int, delay_seconds: float) -> None:
    """Send a worker to the job, after a delay."""
    job_due.send(sender=None, job_id=job_id, delay_seconds=delay_seconds)


class JobLease(Lease[CompactionJob]):
    """A claimed job.

    While it is leased, one more job of its conversation may be queued, and waits for its end.
    """

    def end(self, state: WorkState, **values: object) -> None:
        super().end(state, **values)
        queued = CompactionJob.objects.filter(conversation_id=self.row.conversation_id, state=JobState.QUEUED)
        for job_id in queued.values_list("pk", flat=True):
            wake(job_id, 0.0)

    def release(self, *, attempts: int = 0, error: str = "", delay_seconds: float = 0.0) -> None:
        """Let the job be claimed again, or give way to a queued one."""
        with transaction.atomic():
            queued = CompactionJob.objects.select_for_update().filter(
                conversation_id=self.row.conversation_id, state=JobState.QUEUED
            )
            if not queued.exists():
                super().release(attempts=attempts, error=error, delay_seconds=delay_seconds)
                return
            # A person's request outlives the job that gives way.
            if self.row.reason == Reason.MANUAL:
                queued.update(reason=Reason.MANUAL)
            elif self.row.reason == Reason.REDO_ALL:
                queued.exclude(reason=Reason.MANUAL).update(reason=Reason.REDO_ALL)
            self.finish(last_error=error)


_LEASED = CompactionJob.objects.filter(
    conversation_id=OuterRef("conversation_id"), state=JobState.LEASED, run_after__lte=Now(), leased_until__gte=Now()
).exclude(pk=OuterRef("pk"))

QUEUE = WorkQueue(
    rows=CompactionJob.objects.all,
    wake=wake,
    first_backoff_seconds=2.0,
    longest_backoff_seconds=300.0,
    # Two workers in one conversation would only get in each other's way.
    unless=Exists(_LEASED),
    lease_type=JobLease,
)


def request(*, conversation_id: int, reason: Reason) -> int:
    """Queue a job for the conversation, if none is queued; return its id."""
    request_id = structlog.contextvars.get_contextvars().get("request_id", "")
    row = sql.first_row(
        _REQUEST, {"conversation_id": conversation_id, "reason": reason.value, "request_id": request_id}
    )
    assert row is not None, "either the job is written, or one waits"
    if row["is_new"]:
        wake(row["job_id"], 0.0)
    return row["job_id"]


def open_jobs() -> QuerySet[CompactionJob]:
    """The jobs that are queued or leased."""
    return CompactionJob.objects.filter(state__in=[JobState.QUEUED, JobState.LEASED])


def has_open_job() -> Exists:
    """Whether there is one of the conversation, for a query over conversations."""
    return Exists(open_jobs().filter(conversation_id=OuterRef("conversation_id")))


def maybe_pressed(policy: CompactionPolicy) -> QuerySet[Conversation]:
    """Conversations whose counters, or settings of their own, call for a closer look."""
    return Conversation.objects.filter(
        Q(active_tokens__gte=policy.threshold_tokens)
        | Q(active_messages__gt=policy.max_active_messages)
        | ~Q(overrides={})
    )


def last_outcome_of_resting() -> Case:
    """The outcome of a resting conversation's last run, for a query."""
    runs = CompactionRun.objects.filter(conversation_id=OuterRef("pk")).exclude(
        reason__in=[Reason.REDO, Reason.REDO_ALL]
    )
    # Conversations rest seldom, and only of those the runs are read.
    is_resting = Q(next_seq__lte=F("rest_until_seq"))
    return Case(When(is_resting, then=Subquery(runs.order_by("-started_at").values("outcome")[:1])))


def decide(conversation: Conversation, policy: CompactionPolicy, *, last_outcome: str | None) -> CompactionDecision:
    """The decision on a conversation, which says whether the gate passed it over.

    `last_outcome` is that of `last_outcome_of_resting`.
    """
    decision = policy.overridden(conversation.overrides).decide(conversation.pk, conversation.counters)
    passed_over = decision.should_compact and not decision.is_hard and last_outcome == Outcome.SKIPPED
    return replace(decision, passed_over=passed_over)


def decide_on_one(conversation: Conversation, policy: CompactionPolicy) -> CompactionDecision:
    """The same, with one statement more for a conversation that rests."""
    last_outcome = None
    if conversation.next_seq <= conversation.rest_until_seq:
        found = Conversation.objects.filter(pk=conversation.pk).annotate(last_outcome=last_outcome_of_resting())
        last_outcome = found.values_list("last_outcome", flat=True).get()
    return decide(conversation, policy, last_outcome=last_outcome)

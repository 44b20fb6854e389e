"""Jobs: queued requests to compact a conversation, each claimed by one worker."""

from __future__ import annotations

from dataclasses import replace

import structlog
from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Subquery, When

from compaction.models import CompactionJob, CompactionRun
from compaction.policy import CompactionPolicy
from compaction.types import CompactionDecision, JobState, Outcome, Reason
from conversations import sql
from conversations.models import Conversation
from conversations.work import queue
from conversations.work.queue import BUSY_DELAY_SECONDS, Lease, WorkQueue

# This statement runs at every append under pressure, so it writes nothing if a job is queued already.
_REQUEST = sql.load("compaction/jobs.sql")["request_job"]


def wake(job_id: int, delay_seconds: float) -> None:
    """Send a worker to the job, after a delay."""
    queue.wake("compaction.tasks.compact_conversation", job_id=job_id, delay_seconds=delay_seconds)


class JobLease(Lease[CompactionJob]):
    """A claimed job.

    While it is leased, one more job of its conversation may be queued. That job waits for the end of this one.
    """

    def release(self, *, attempts: int = 0, error: str = "", delay_seconds: float = 0.0) -> None:
        """Requeue the job, or finish it if the conversation has a queued one."""
        with transaction.atomic():
            waiting = CompactionJob.objects.select_for_update().filter(
                conversation_id=self.row.conversation_id, state=JobState.QUEUED
            )
            # A person's redo and a compaction are not merged: this row stays, and a queued compaction goes first.
            is_redo = Q(reason=Reason.REDO_ALL)
            queued = waiting.filter(is_redo if self.row.reason == Reason.REDO_ALL else ~is_redo)
            if not queued.exists():
                for compaction in waiting.exclude(is_redo):
                    wake(compaction.job_id, 0.0)
                    delay_seconds = max(delay_seconds, BUSY_DELAY_SECONDS)
                super().release(attempts=attempts, error=error, delay_seconds=delay_seconds)
                return
            # The queued job takes over a person's request.
            if self.row.reason == Reason.MANUAL:
                queued.update(reason=Reason.MANUAL)
            self.finish(last_error=error)


QUEUE = WorkQueue(
    rows=CompactionJob.objects.all,
    wake=wake,
    first_backoff_seconds=2.0,
    longest_backoff_seconds=300.0,
    # A conversation's lock admits one run, so only one of its jobs is leased at a time.
    about=("conversation_id",),
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
    """Select the jobs that are queued or leased."""
    return CompactionJob.objects.filter(state__in=[JobState.QUEUED, JobState.LEASED])


def has_open_job() -> Exists:
    """Build the condition that a conversation has an open job."""
    return Exists(open_jobs().filter(conversation_id=OuterRef("conversation_id")))


def maybe_under_pressure(policy: CompactionPolicy) -> QuerySet[Conversation]:
    """Select the conversations that may be under pressure, for `decide` to check.

    Their counters exceed the site's thresholds, or they override settings.
    """
    return Conversation.objects.filter(
        Q(active_tokens__gte=policy.threshold_tokens)
        | Q(active_messages__gt=policy.max_active_messages)
        | ~Q(overrides={})
    )


def last_outcome_of_resting() -> Case:
    """Build the query expression for a resting conversation's last outcome.

    After an exhausted or skipped run, a conversation rests until it has messages after `rest_until_seq`. The value is
    null for conversations that do not rest.
    """
    runs = CompactionRun.objects.filter(conversation_id=OuterRef("pk")).exclude(
        reason__in=[Reason.REDO, Reason.REDO_ALL]
    )
    # Few conversations rest, and the subquery runs for those only.
    is_resting = Q(next_seq__lte=F("rest_until_seq"))
    return Case(When(is_resting, then=Subquery(runs.order_by("-started_at").values("outcome")[:1])))


def decide(conversation: Conversation, policy: CompactionPolicy, *, last_outcome: str | None) -> CompactionDecision:
    """Decide on compaction; `passed_over` says that the significance gate skipped it.

    `last_outcome` is the value of `last_outcome_of_resting` for this conversation.
    """
    decision = policy.overridden(conversation.overrides).decide(conversation.pk, conversation.counters)
    passed_over = decision.should_compact and not decision.is_hard and last_outcome == Outcome.SKIPPED
    return replace(decision, passed_over=passed_over)


def decide_on_one(conversation: Conversation, policy: CompactionPolicy) -> CompactionDecision:
    """Call `decide` after reading the last outcome, if the conversation rests."""
    last_outcome = None
    if conversation.next_seq <= conversation.rest_until_seq:
        found = Conversation.objects.filter(pk=conversation.pk).annotate(last_outcome=last_outcome_of_resting())
        last_outcome = found.values_list("last_outcome", flat=True).get()
    return decide(conversation, policy, last_outcome=last_outcome)

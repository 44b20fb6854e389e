"""Jobs as rows: asked for once, claimed by one worker, taken up again when that worker falls silent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.db import Error, connection, transaction
from django.db.models import OuterRef, QuerySet
from django.utils import timezone

from compaction.models import CompactionJob
from compaction.signals import job_due
from compaction.types import JobState, Reason
from conversations.errors import Conflict
from conversations.sql import first_row, rows

# A job that kills its worker again and again is set aside after this many claims, for a person to look at.
MAX_ATTEMPTS = 8

# Asked at every append under pressure, so a wish that waits already costs a look and no write. A person's wish outranks
# the machine's: it is carried out under pressure or not. Pressure outranks a redo, which the sweep asks for again.
_REQUEST = """
    WITH waiting AS (
        SELECT job_id, reason FROM compaction_jobs WHERE conversation_id = %(conversation_id)s AND state = 'queued'
    ), written AS (
        INSERT INTO compaction_jobs (conversation_id, reason, state, fence, attempts, last_error, request_id)
        SELECT %(conversation_id)s, %(reason)s, 'queued', 0, 0, '', %(request_id)s
        WHERE NOT EXISTS (SELECT FROM waiting WHERE reason = 'manual' OR reason = %(reason)s)
        ON CONFLICT (conversation_id) WHERE state = 'queued' DO UPDATE
          SET reason = CASE WHEN excluded.reason IN ('manual', 'redo_all') OR compaction_jobs.reason = 'redo'
                            THEN excluded.reason ELSE compaction_jobs.reason END
        RETURNING job_id, xmax = 0 AS is_new
    )
    SELECT job_id, is_new FROM written
    UNION ALL
    SELECT job_id, false FROM waiting WHERE NOT EXISTS (SELECT FROM written)
"""

# While one job of a conversation is at work, the next one waits, and whoever wishes for the same meets it there.
_IS_DUE = """
    job.state IN ('queued', 'leased') AND job.run_after <= clock_timestamp()
    AND (job.state = 'queued' OR job.leased_until < clock_timestamp())
    AND NOT EXISTS (
        SELECT FROM compaction_jobs AS other
        WHERE other.conversation_id = job.conversation_id AND other.job_id <> job.job_id
          AND other.state = 'leased' AND other.run_after <= clock_timestamp()
          AND other.leased_until >= clock_timestamp()
    )
"""
_DUE = f"SELECT job_id FROM compaction_jobs AS job WHERE {_IS_DUE} ORDER BY run_after, job_id LIMIT 1000"
_CLAIM = f"""
    UPDATE compaction_jobs SET
        state = 'leased', fence = fence + 1, attempts = attempts + 1,
        leased_until = clock_timestamp() + make_interval(secs => %(lease)s)
    WHERE job_id = (
        SELECT job_id FROM compaction_jobs AS job
        WHERE (%(job_id)s::bigint IS NULL OR job_id = %(job_id)s) AND {_IS_DUE}
        ORDER BY run_after, job_id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    )
    RETURNING job_id, conversation_id, reason, fence, attempts, request_id
"""


class LeaseLost(Conflict):
    """Another worker has taken the job over; what this one was about to write must not be written."""

    code = "lease_lost"
    retryable = True


@dataclass(frozen=True)
class Claim:
    """A job in a worker's hands."""

    job_id: int
    conversation_id: int
    reason: Reason
    fence: int
    attempts: int
    lease_seconds: int
    request_id: str = ""

    def renew(self, *, got_on: bool = False) -> None:
        """Say that the worker is alive; LeaseLost if the job is no longer its own.

        Called in the transaction of each write, with `got_on`, it also holds the row until that write is committed, and
        forgets the attempts before this one.
        """
        held = CompactionJob.objects.filter(pk=self.job_id, fence=self.fence, state=JobState.LEASED)
        attempts = {"attempts": 1} if got_on else {}
        if not held.update(leased_until=timezone.now() + timedelta(seconds=self.lease_seconds), **attempts):
            raise LeaseLost(f"Job {self.job_id} was given to another worker.")

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Within, the job stays this worker's for as long as its process lives: a model may outlast a lease."""
        over = threading.Event()

        def keep() -> None:
            while not over.wait(self.lease_seconds / 3):
                try:
                    self.renew()
                except LeaseLost:
                    break
                except Error:
                    # The database is away, and may be back at the next attempt, on a connection that works.
                    connection.close()
            connection.close()

        keeper = threading.Thread(target=keep, daemon=True)
        keeper.start()
        try:
            yield
        finally:
            over.set()
            keeper.join()

    def finish(self) -> None:
        self._end(state=JobState.DONE, finished_at=timezone.now(), last_error="")

    def put_back(self, *, error: str, delay_seconds: float, got_on: bool = False) -> None:
        """Let the job be tried again later, or, after too many attempts that did not get on with it, set it aside.

        If the conversation has another job waiting by now, that one takes this one's place.
        """
        with transaction.atomic():
            waiting = CompactionJob.objects.select_for_update().filter(
                conversation_id=self.conversation_id, state=JobState.QUEUED
            )
            if self.attempts >= MAX_ATTEMPTS and not got_on:
                self._end(state=JobState.FAILED, finished_at=timezone.now(), last_error=error)
            elif waiting.exists():
                if self.reason is Reason.MANUAL:
                    waiting.update(reason=Reason.MANUAL)
                elif self.reason is Reason.REDO_ALL:
                    waiting.exclude(reason=Reason.MANUAL).update(reason=Reason.REDO_ALL)
                self._end(state=JobState.DONE, finished_at=timezone.now(), last_error=error)
            else:
                job_due.send(sender=None, job_id=self.job_id, delay_seconds=delay_seconds)
                # Not queued again: a new wish may come in at any moment, and two may not wait. A lease that runs out
                # at the right time comes to the same.
                later = timezone.now() + timedelta(seconds=delay_seconds)
                attempts = 0 if got_on else self.attempts
                self._end(
                    state=JobState.LEASED, leased_until=later, run_after=later, last_error=error, attempts=attempts
                )

    def _end(self, **values: object) -> None:
        CompactionJob.objects.filter(pk=self.job_id, fence=self.fence).update(**values)
        # Whoever was woken for the next one while this one was at work has gone back to sleep.
        waiting = CompactionJob.objects.filter(conversation_id=self.conversation_id, state=JobState.QUEUED)
        for job_id in waiting.values_list("job_id", flat=True):
            job_due.send(sender=None, job_id=job_id, delay_seconds=0.0)


def request(*, conversation_id: int, reason: Reason) -> int:
    """The id of the job that will compact the conversation: one that waits already is enough."""
    request_id = structlog.contextvars.get_contextvars().get("request_id", "")
    row = first_row(_REQUEST, {"conversation_id": conversation_id, "reason": reason.value, "request_id": request_id})
    assert row is not None, "either the job is written, or one waits"
    if row["is_new"]:
        job_due.send(sender=None, job_id=row["job_id"], delay_seconds=0.0)
    return row["job_id"]


def watch(job_id: int) -> None:
    """Look again at a job that somebody else holds when its lease will have run out."""
    held = CompactionJob.objects.filter(pk=job_id, state=JobState.LEASED)
    until = held.values_list("leased_until", flat=True).first()
    if until is not None:
        left = (until - timezone.now()).total_seconds()
        job_due.send(sender=None, job_id=job_id, delay_seconds=max(0.0, left) + 1.0)


def claim(*, lease_seconds: int, job_id: int | None = None) -> Claim | None:
    """The next job that is due, or the given one, now this worker's; None if there is none to be had."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, {"lease": lease_seconds, "job_id": job_id})
        row = cursor.fetchone()
    if row is None:
        return None
    job, conversation_id, reason, fence, attempts, request_id = row
    return Claim(
        job_id=job,
        conversation_id=conversation_id,
        reason=Reason(reason),
        fence=fence,
        attempts=attempts,
        lease_seconds=lease_seconds,
        request_id=request_id,
    )


def due() -> list[int]:
    """The jobs that a worker could claim now: those waiting, and those whose worker has fallen silent."""
    return [job_id for (job_id,) in rows(_DUE)]


def open_jobs() -> QuerySet[CompactionJob]:
    """The jobs of a conversation, in a query about conversations, that are waiting or at work."""
    return CompactionJob.objects.filter(
        conversation_id=OuterRef("conversation_id"), state__in=[JobState.QUEUED, JobState.LEASED]
    )


def is_any_open(reason: Reason) -> bool:
    """Whether a job for this reason is waiting or at work, in any conversation."""
    return CompactionJob.objects.filter(reason=reason, state__in=[JobState.QUEUED, JobState.LEASED]).exists()

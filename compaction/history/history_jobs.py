"""Jobs: requests to summarize a session, or to make the arcs of a project."""

from __future__ import annotations

from compaction.history.models import HistoryJob
from compaction.history.types import HistoryReason
from compaction.types import JobState
from conversations import sql
from conversations.work import queue
from conversations.work.queue import WorkQueue

_REQUEST = sql.load("compaction/history.sql")["request_history_job"]


def wake(job_id: int, delay_seconds: float) -> None:
    """Send a worker to the job, after a delay."""
    queue.wake("compaction.tasks.make_history", job_id=job_id, delay_seconds=delay_seconds)


QUEUE = WorkQueue(
    rows=HistoryJob.objects.all,
    wake=wake,
    first_backoff_seconds=2.0,
    longest_backoff_seconds=300.0,
    about=("conversation_id", "project_id"),
)


def request(
    *, workspace_id: int, reason: HistoryReason, conversation_id: int | None = None, project_id: int | None = None
) -> int:
    """Queue a job for a conversation or project if none is queued; return its id."""
    about = {"conversation_id": conversation_id, "project_id": project_id}
    while not (written := sql.rows(_REQUEST, {"workspace_id": workspace_id, "reason": reason.value, **about})):
        queued = HistoryJob.objects.filter(state=JobState.QUEUED, **about)
        if reason is HistoryReason.MANUAL:
            queued.update(reason=reason)
        if (found := queued.first()) is not None:
            return found.pk
        # It was claimed meanwhile, with its own reason: request another.
    [(job_id,)] = written
    wake(job_id, 0.0)
    return job_id

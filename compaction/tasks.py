"""Background tasks: each starts a worker for one row, which is a job or a plan."""

from __future__ import annotations

from django_huey import db_periodic_task, db_task
from huey import crontab

from compaction.background.worker import CompactionWorker
from compaction.history import history_jobs
from compaction.history.history_worker import HistoryWorker
from compaction.plans.plan_store import CompactionPlans


@db_task(queue="compaction")
def compact_conversation(*, job_id: int) -> None:
    CompactionWorker.from_settings().work(job_id=job_id)


@db_task(queue="compaction")
def carry_out_plan(*, plan_id: str) -> None:
    CompactionPlans.from_settings().execute_queued(plan_id=plan_id)


@db_task(queue="compaction")
def make_history(*, job_id: int) -> None:
    HistoryWorker.from_settings().work(job_id=job_id)


@db_periodic_task(crontab(minute="*"), queue="maintenance")
def sweep_compaction_jobs() -> None:
    """Wake workers for due jobs and plans; request compactions and session summaries."""
    CompactionWorker.from_settings().sweep()
    CompactionPlans.from_settings().sweep()
    HistoryWorker.from_settings().sweep()


@db_periodic_task(crontab(hour="3", minute="40"), queue="maintenance")
def remove_finished_history_jobs() -> None:
    """Delete old history jobs, except the newest of each conversation or project."""
    # Jobs of compactions are kept: a run's row refers to its job, and the row's hash covers the reference.
    history_jobs.QUEUE.remove_finished(of=("conversation", "project", "reason"))

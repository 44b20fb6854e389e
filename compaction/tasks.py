"""Work for later. The rows are the jobs; these tasks only wake somebody to look at them."""

from __future__ import annotations

from django_huey import db_periodic_task, db_task
from huey import crontab

from compaction.plans.plan_store import CompactionPlans
from compaction.worker import CompactionWorker


@db_task(queue="compaction")
def compact_conversation(*, job_id: int) -> None:
    CompactionWorker.from_settings().work(job_id=job_id)


@db_task(queue="compaction")
def carry_out_plan(*, plan_id: str) -> None:
    CompactionPlans.from_settings().carry_out(plan_id=plan_id)


@db_periodic_task(crontab(minute="*"), queue="maintenance")
def sweep_compaction_jobs() -> None:
    CompactionWorker.from_settings().sweep()
    CompactionPlans.from_settings().sweep()

"""Background tasks. The rows are the scans; a task only starts a worker."""

from __future__ import annotations

import structlog
from django_huey import db_periodic_task, db_task
from huey import crontab

from integrity.scans.scanning import ScanWorker


@db_task(queue="maintenance")
def scan_conversations(*, scan_id: int, request_id: str = "") -> None:
    # Log lines, and the wake-ups that follow, carry the id of the request.
    with structlog.contextvars.bound_contextvars(scan_id=scan_id, request_id=request_id):
        ScanWorker.from_settings().work(scan_id=scan_id)


@db_periodic_task(crontab(minute="*"), queue="maintenance")
def sweep_integrity_scans() -> None:
    ScanWorker.from_settings().sweep()

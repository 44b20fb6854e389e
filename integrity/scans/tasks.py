"""Checks for later. The rows are the scans; these tasks only wake somebody to look at them."""

from __future__ import annotations

import structlog
from django_huey import db_periodic_task, db_task
from huey import crontab

from integrity.scans.scanning import ScanWorker


@db_task(queue="maintenance")
def scan_conversations(*, scan_id: int, request_id: str = "") -> None:
    # What is logged, and who is woken to go on, belongs to the request that asked for it.
    with structlog.contextvars.bound_contextvars(scan_id=scan_id, request_id=request_id):
        ScanWorker.from_settings().work(scan_id=scan_id)


@db_periodic_task(crontab(minute="*"), queue="maintenance")
def sweep_integrity_scans() -> None:
    ScanWorker.from_settings().sweep()

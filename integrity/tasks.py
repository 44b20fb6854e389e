"""Background tasks of integrity; each task calls one service.

Scans are stored as rows, and a task only wakes a worker. If a wake-up is lost, the sweep finds the scan.
"""

from __future__ import annotations

import structlog
from django_huey import db_periodic_task, db_task
from huey import crontab

from integrity.anchors.anchoring import AnchorService
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from integrity.scans import ScanWorker


@db_task(queue="maintenance")
def scan_conversations(*, scan_id: int, request_id: str = "") -> None:
    # Log lines and later wake-ups have the id of the request that started the scan.
    with structlog.contextvars.bound_contextvars(scan_id=scan_id, request_id=request_id):
        ScanWorker.from_settings().work(scan_id=scan_id)


@db_periodic_task(crontab(minute="*"), queue="maintenance")
def sweep_integrity_scans() -> None:
    """Wake workers for due scans, request scheduled scans, delete old reports."""
    ScanWorker.from_settings().sweep()


@db_periodic_task(crontab(minute="*/5"), queue="maintenance")
def make_anchor_if_due() -> None:
    """Make an anchor if the newest one is older than the configured interval."""
    AnchorService.from_settings().sweep()


@db_periodic_task(crontab(minute="*/5"), queue="maintenance")
def archive_what_is_due() -> None:
    """Move texts of conversations that were not used for long to the cold tier."""
    Retention.from_settings().sweep()


@db_periodic_task(crontab(minute="*/5"), queue="maintenance")
def finish_erasures() -> None:
    """Finish erasures that were interrupted."""
    Erasures.from_settings().sweep()

"""Scans: queued requests to check, each claimed by one worker at a time."""

from __future__ import annotations

from typing import Any

from django.dispatch import Signal

from conversations.errors import NotFound
from conversations.models.columns import record_of
from conversations.scope import Scope
from conversations.work.queue import WorkQueue
from integrity.models import IntegrityScan
from integrity.reports import outline_of
from integrity.types import ScanMode, ScanRecord, ScanState

# The lease must be longer than the check of any batch.
LEASE_SECONDS = 900.0

# Sent when a scan can be claimed, now or after a delay. sender=None, scan_id: int, delay_seconds: float
scan_due = Signal()


def wake(scan_id: int, delay_seconds: float) -> None:
    """Wake a worker for the scan after a delay."""
    scan_due.send(sender=None, scan_id=scan_id, delay_seconds=delay_seconds)


QUEUE = WorkQueue(rows=IntegrityScan.objects.all, wake=wake, first_backoff_seconds=10.0, longest_backoff_seconds=3600.0)


def request(scope: Scope, *, conversation_id: int | None, mode: ScanMode, with_plan: bool = False) -> IntegrityScan:
    """Queue a scan, or return the equal one that is already queued."""
    wanted: dict[str, Any] = {
        "workspace_id": scope.workspace_id,
        "conversation_id": conversation_id,
        "mode": mode,
        "with_plan": with_plan,
    }
    scan, is_new = IntegrityScan.objects.get_or_create(state=ScanState.QUEUED, **wanted)
    if is_new:
        scan.refresh_from_db()
        wake(scan.pk, 0.0)
    return scan


def scan_of(scope: Scope, scan_id: int) -> IntegrityScan:
    """Return the row of a scan; raises NotFound if the scope does not have it."""
    scan = scope.narrow(IntegrityScan.objects.select_related("report")).filter(pk=scan_id).first()
    if scan is None:
        raise NotFound(f"There is no scan {scan_id} that you may see.")
    return scan


def scan_record(scan: IntegrityScan) -> ScanRecord:
    return record_of(
        ScanRecord,
        scan,
        extent=ScanMode(scan.mode),
        state=ScanState(scan.state),
        repair_id=scan.plan_id,
        report=outline_of(scan.report) if scan.report else None,
    )

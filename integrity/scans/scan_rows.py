"""Scans: queued requests to check, each claimed by one worker at a time."""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.dispatch import Signal

from conversations.errors import NotFound
from conversations.models import Workspace
from conversations.scope import Scope
from conversations.work.queue import WorkQueue
from integrity.models import IntegrityScan
from integrity.reports import outline_of
from integrity.types import ScanMode, ScanRecord, ScanState, record

# Longer than any batch takes.
LEASE_SECONDS = 900.0

# A scan can be claimed, now or after a delay. sender=None, scan_id: int, delay_seconds: float
scan_due = Signal()


def wake(scan_id: int, delay_seconds: float) -> None:
    """Send a worker to the scan, after a delay."""
    scan_due.send(sender=None, scan_id=scan_id, delay_seconds=delay_seconds)


QUEUE = WorkQueue(
    rows=IntegrityScan.objects.all,
    wake=wake,
    first_backoff_seconds=10.0,
    longest_backoff_seconds=3600.0,
)


def request(scope: Scope, *, conversation_id: int | None, mode: ScanMode, with_plan: bool = False) -> IntegrityScan:
    """Return the scan that will be carried out; a queued one for the same is enough."""
    wanted = {
        "workspace_id": scope.workspace_id,
        "conversation_id": conversation_id,
        "mode": mode,
        "with_plan": with_plan,
    }
    queued = IntegrityScan.objects.filter(**wanted, state=ScanState.QUEUED)
    found = queued.first()
    if found is None:
        try:
            with transaction.atomic():
                found = IntegrityScan.objects.create(**wanted)
        except IntegrityError:
            # Another request for the same came first.
            found = queued.get()
        else:
            found.refresh_from_db()
            wake(found.pk, 0.0)
    return found


def last_request(mode: ScanMode) -> datetime | None:
    """Return when a scan of everything in this mode was last requested."""
    scans = IntegrityScan.objects.filter(workspace=None, conversation=None, mode=mode)
    return scans.order_by("-requested_at").values_list("requested_at", flat=True).first()


def workspaces_unscanned_since(moment: datetime, mode: ScanMode) -> list[int]:
    """Return the workspaces without a request for a scan in this mode since then."""
    scans = IntegrityScan.objects.filter(workspace=OuterRef("pk"), conversation=None, mode=mode)
    unscanned = Workspace.objects.filter(~Exists(scans.filter(requested_at__gt=moment)))
    return list(unscanned.order_by("pk").values_list("pk", flat=True))


def scan_of(scope: Scope, scan_id: int) -> IntegrityScan:
    """Return the row of a scan; NotFound if the scope has none."""
    scan = scope.narrow(IntegrityScan.objects.select_related("report")).filter(pk=scan_id).first()
    if scan is None:
        raise NotFound(f"There is no scan {scan_id} that you may see.")
    return scan


def record_of(scan: IntegrityScan) -> ScanRecord:
    return record(
        ScanRecord,
        scan,
        extent=scan.mode,
        repair_id=scan.plan_id,
        report=outline_of(scan.report) if scan.report else None,
    )

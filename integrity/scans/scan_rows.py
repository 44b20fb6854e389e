"""Scans as rows: asked for once, claimed by one worker, taken up again where that worker was when it fell silent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from conversations.errors import Conflict, NotFound
from conversations.models import Workspace
from conversations.scope import Scope
from integrity import models
from integrity.reports import outline_of
from integrity.signals import scan_due
from integrity.types import ScanMode, ScanRecord, ScanState

# Longer than any batch takes: who loses the scan all the same finds out before it writes.
LEASE = timedelta(minutes=15)
# A scan that kills its worker again and again, without getting on, is set aside after this many claims.
MOST_ATTEMPTS = 8

_IS_DUE = """
    state IN ('queued', 'leased') AND run_after <= clock_timestamp()
    AND (state = 'queued' OR leased_until < clock_timestamp())
"""
_CLAIM = f"""
    UPDATE integrity_scans SET
        state = 'leased', fence = fence + 1, attempts = attempts + 1,
        leased_until = clock_timestamp() + make_interval(secs => %(lease)s)
    WHERE scan_id = (
        SELECT scan_id FROM integrity_scans
        WHERE (%(scan_id)s::bigint IS NULL OR scan_id = %(scan_id)s) AND {_IS_DUE}
        ORDER BY run_after, scan_id LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    RETURNING scan_id
"""
_DUE = f"SELECT scan_id FROM integrity_scans WHERE {_IS_DUE} ORDER BY run_after, scan_id LIMIT 1000"


class ScanLost(Conflict):
    """Another worker has taken the scan over; what this one was about to write must not be written."""

    code = "scan_lost"
    retryable = True


@dataclass(frozen=True)
class ScanClaim:
    """A scan in a worker's hands."""

    scan: models.IntegrityScan

    def advance(self, *, position: int, report: models.IntegrityReport) -> None:
        """Say how far it is, in the transaction that writes what was found up to there; ScanLost, or hold the row."""
        self._write(position=position, report=report, leased_until=timezone.now() + LEASE, attempts=1)

    def pause(self) -> None:
        """Let the scan be taken up again by whoever comes next."""
        self._write(leased_until=timezone.now(), attempts=0)
        scan_due.send(sender=None, scan_id=self.scan.pk, delay_seconds=0.0)

    def finish(self, plan: models.RepairPlan | None) -> None:
        self._write(state=ScanState.DONE, finished_at=timezone.now(), plan=plan, last_error="")

    def put_back(self, *, error: str) -> None:
        """After a failure: let it be tried again in a while, or, after too many times, set it aside."""
        if self.scan.attempts >= MOST_ATTEMPTS:
            self._write(state=ScanState.FAILED, finished_at=timezone.now(), last_error=error)
            return
        delay = timedelta(seconds=10 * 2**self.scan.attempts)
        later = timezone.now() + delay
        self._write(leased_until=later, run_after=later, last_error=error)
        scan_due.send(sender=None, scan_id=self.scan.pk, delay_seconds=delay.total_seconds())

    def _write(self, **values: object) -> None:
        held = models.IntegrityScan.objects.filter(pk=self.scan.pk, fence=self.scan.fence, state=ScanState.LEASED)
        if not held.update(**values):
            raise ScanLost(f"Scan {self.scan.pk} was given to another worker.")


def request(
    scope: Scope, *, conversation_id: int | None, mode: ScanMode, with_plan: bool = False
) -> models.IntegrityScan:
    """The scan that will be carried out: one that waits for the same already is enough."""
    wanted = {
        "workspace_id": scope.workspace_id,
        "conversation_id": conversation_id,
        "mode": mode,
        "with_plan": with_plan,
    }
    waiting = models.IntegrityScan.objects.filter(**wanted, state=ScanState.QUEUED)
    found = waiting.first()
    if found is None:
        try:
            with transaction.atomic():
                found = models.IntegrityScan.objects.create(**wanted)
        except IntegrityError:
            # Somebody asked for the same at this moment.
            found = waiting.get()
        else:
            found.refresh_from_db()
            scan_due.send(sender=None, scan_id=found.pk, delay_seconds=0.0)
    return found


def claim(scan_id: int | None = None) -> ScanClaim | None:
    """The next scan that is due, or the given one, now this worker's; None if there is none to be had."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, {"lease": LEASE.total_seconds(), "scan_id": scan_id})
        row = cursor.fetchone()
    return None if row is None else ScanClaim(models.IntegrityScan.objects.select_related("report").get(pk=row[0]))


def due() -> list[int]:
    """The scans that a worker could claim now: those waiting, and those whose worker has fallen silent."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE)
        return [scan_id for (scan_id,) in cursor.fetchall()]


def last_request(mode: ScanMode) -> datetime | None:
    """When everything was last asked to be looked through in this way."""
    scans = models.IntegrityScan.objects.filter(workspace=None, conversation=None, mode=mode)
    return scans.order_by("-requested_at").values_list("requested_at", flat=True).first()


def workspaces_unscanned_since(moment: datetime, mode: ScanMode) -> list[int]:
    """The workspaces that nobody has asked to have looked through in this way since then."""
    scans = models.IntegrityScan.objects.filter(workspace=OuterRef("pk"), conversation=None, mode=mode)
    unscanned = Workspace.objects.filter(~Exists(scans.filter(requested_at__gt=moment)))
    return list(unscanned.order_by("pk").values_list("pk", flat=True))


def scan_of(scope: Scope, scan_id: int) -> models.IntegrityScan:
    """The row of a scan; NotFound if there is none that the scope may see."""
    scan = scope.narrow(models.IntegrityScan.objects.select_related("report")).filter(pk=scan_id).first()
    if scan is None:
        raise NotFound(f"There is no scan {scan_id} that you may see.")
    return scan


def record_of(scan: models.IntegrityScan) -> ScanRecord:
    return ScanRecord(
        scan_id=scan.scan_id,
        conversation_id=scan.conversation_id,
        extent=ScanMode(scan.mode),
        with_plan=scan.with_plan,
        state=ScanState(scan.state),
        requested_at=scan.requested_at,
        finished_at=scan.finished_at,
        attempts=scan.attempts,
        report_id=scan.report_id,
        repair_id=scan.plan_id,
        report=outline_of(scan.report) if scan.report else None,
    )

"""Background checks: scans run in batches, with pauses for other work.

A scan is a row, which one worker at a time claims. A stopped scan resumes at its last position.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import OperationalError, transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone

from compaction.types import JobState
from conversations.models import Conversation, Workspace
from conversations.models.columns import record_of
from conversations.scope import EVERYTHING, Scope
from conversations.sql import snapshot
from conversations.work import queue
from conversations.work.queue import Lease, WorkQueue
from integrity import reports
from integrity.examination import Examination, batches_of, changed_since_clean, note_checked, versions_of
from integrity.invariants import INVARIANTS
from integrity.models import IntegrityReport, IntegrityScan, RepairPlan
from integrity.policy import IntegrityPolicy
from integrity.repairs import repair_plans
from integrity.types import ScanMode, ScanRecord

# The lease must be longer than the check of any batch.
LEASE_SECONDS = 900.0
# After each invariant, a scan pauses for twice the time of its work, so that most time is left for other work.
REST = 2
LONGEST_REST_SECONDS = 60.0
# The maximum number of reports, and also of scans, that one sweep deletes.
MOST_DELETED = 100


def wake(scan_id: int, delay_seconds: float) -> None:
    """Wake a worker for the scan after a delay."""
    given = {"scan_id": scan_id, "request_id": structlog.contextvars.get_contextvars().get("request_id", "")}
    queue.wake("integrity.tasks.scan_conversations", delay_seconds=delay_seconds, **given)


QUEUE = WorkQueue(rows=IntegrityScan.objects.all, wake=wake, first_backoff_seconds=10.0, longest_backoff_seconds=3600.0)


def request(scope: Scope, *, conversation_id: int | None, mode: ScanMode, with_plan: bool = False) -> IntegrityScan:
    """Queue a scan, or return the equal one that is already queued."""
    wanted: dict[str, Any] = {
        "workspace_id": scope.workspace_id,
        "conversation_id": conversation_id,
        "mode": mode,
        "with_plan": with_plan,
    }
    scan, is_new = IntegrityScan.objects.get_or_create(state=JobState.QUEUED, **wanted)
    if is_new:
        scan.refresh_from_db()
        wake(scan.pk, 0.0)
    return scan


def scan_of(scope: Scope, scan_id: int) -> IntegrityScan:
    """Return the row of a scan; raises NotFound if the scope does not have it."""
    return scope.find(IntegrityScan.objects.select_related("report"), "scan", scan_id, pk=scan_id)


def scan_record(scan: IntegrityScan) -> ScanRecord:
    return record_of(
        ScanRecord,
        scan,
        extent=ScanMode(scan.mode),
        state=JobState(scan.state),
        repair_id=scan.plan_id,
        report=reports.outline_of(scan.report) if scan.report else None,
    )


@dataclass(frozen=True)
class ScanWorker:
    """Runs scans, and requests scheduled scans when they are due."""

    policy: IntegrityPolicy
    now: Callable[[], datetime] = timezone.now
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def from_settings(cls) -> ScanWorker:
        return cls(policy=IntegrityPolicy.from_settings())

    def work(self, *, scan_id: int | None = None) -> bool:
        """Work on the given scan, or on the next one, for a limited time.

        Returns False if no scan can be claimed. Each batch is read in one snapshot. Its results are stored with the new
        position, so that any worker can continue. A failed scan is retried after a growing backoff.
        """
        lease = QUEUE.claim(lease_seconds=LEASE_SECONDS, row_id=scan_id)
        if lease is None:
            return False
        with lease.attempt():
            self._carry_out(lease)
        return True

    def sweep(self) -> None:
        """Wake workers for due scans, request scheduled scans, delete old ones."""
        QUEUE.wake_due()
        now = self.now()
        if self.policy.scan_interval_minutes:
            interval = timedelta(minutes=self.policy.scan_interval_minutes)
            self._request_each(ScanMode.INCREMENTAL, unless_within=(now - interval, now + interval))
        if now.hour == self.policy.full_scan_hour:
            self._request_everything(unless_within=(now - timedelta(hours=2), now + timedelta(hours=2)))
        self._delete_old(now - timedelta(days=self.policy.kept_report_days))

    def _delete_old(self, before: datetime) -> None:
        """Delete some old scans, and old reports without an applied repair plan."""
        applied = RepairPlan.objects.filter(report_id=OuterRef("pk"), applied_at__isnull=False)
        reports = IntegrityReport.objects.filter(~Exists(applied), started_at__lt=before)
        over = IntegrityScan.objects.filter(finished_at__lt=before)
        for old in (reports, over):
            old.model.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:MOST_DELETED])).delete()

    def _request_each(self, mode: ScanMode, *, unless_within: tuple[datetime, datetime]) -> None:
        """Request one scan for each workspace, so that its members can read the report.

        A scan was requested much later than now if the clock was set back since: it does not count.
        """
        requested = IntegrityScan.objects.filter(
            workspace=OuterRef("pk"), conversation=None, mode=mode, requested_at__range=unless_within
        )
        for workspace in Workspace.objects.filter(~Exists(requested)).order_by("pk"):
            request(Scope(workspace.pk), conversation_id=None, mode=mode)

    def _request_everything(self, *, unless_within: tuple[datetime, datetime]) -> None:
        """Request a full scan of each workspace, and then one of the whole site.

        The scan of the site also finds rows that no longer belong to a workspace. It is incremental, and skips the
        conversations that the scans of the workspaces have just checked.
        """
        self._request_each(ScanMode.FULL, unless_within=unless_within)
        mode = ScanMode.INCREMENTAL
        requested = IntegrityScan.objects.filter(workspace=None, conversation=None, mode=mode)
        if not requested.filter(requested_at__range=unless_within).exists():
            request(EVERYTHING, conversation_id=None, mode=mode)

    def _carry_out(self, lease: Lease[IntegrityScan]) -> None:
        scan = lease.row
        report = scan.report
        if report is None:
            with transaction.atomic():
                report = reports.begin(ScanMode(scan.mode), scan.workspace_id, scan.conversation_id, self.now())
                lease.renew(position=0, report=report, attempts=1)
        deadline = time.monotonic() + self.policy.scan_seconds
        for batch in batches_of(self._unchecked_conversations(scan)):
            self._check_batch(batch, report, lease)
            if time.monotonic() >= deadline:
                lease.release()
                return
            self.sleep(self.policy.scan_pause_ms / 1000)
        of_the_site = Examination(INVARIANTS)
        if scan.conversation_id is None:
            with self._gentle_snapshot():
                of_the_site.check_site_rows(scan.workspace_id)
        # One transaction, because a worker that continues the scan adds these findings again.
        with transaction.atomic():
            reports.add(report, of_the_site)
            reports.finish(report)
            lease.finish(plan=repair_plans.make_plan(report) if scan.with_plan and not report.is_clean else None)

    def _unchecked_conversations(self, scan: IntegrityScan) -> QuerySet[Conversation]:
        """Select the conversations that the scan must still check."""
        rows = Scope(scan.workspace_id).narrow(Conversation.objects.filter(pk__gt=scan.position))
        if scan.conversation_id is not None:
            rows = rows.filter(pk=scan.conversation_id)
        if scan.mode != ScanMode.INCREMENTAL:
            return rows
        left = changed_since_clean(rows)
        if scan.workspace_id is not None:
            return left
        # Skip conversations that a scan of a workspace has checked since the request: that scan's report has them.
        return left.exclude(
            integrity_check__checked_at__gte=scan.requested_at, integrity_check__row_version=F("row_version")
        )

    def _check_batch(self, batch: Mapping[int, int], report: IntegrityReport, lease: Lease[IntegrityScan]) -> None:
        """Check a batch. After a timeout, check each of its conversations separately."""
        examined = Examination(INVARIANTS, thorough=lease.row.mode == ScanMode.FULL, rest=self._rest)
        checked_at = self.now()
        try:
            with self._gentle_snapshot():
                versions = versions_of(batch)
                examined.check(batch)
        except OperationalError:
            if len(batch) > 1:
                for conversation_id, messages in batch.items():
                    self._check_batch({conversation_id: messages}, report, lease)
                return
            examined, versions = Examination(()), {}
            report.unchecked += list(batch)
        with transaction.atomic():
            lease.renew(position=max(batch), report=report, attempts=1)
            reports.add(report, examined)
            note_checked(versions, examined, checked_at=checked_at)

    def _rest(self, worked_seconds: float) -> None:
        self.sleep(min(LONGEST_REST_SECONDS, REST * worked_seconds))

    def _gentle_snapshot(self) -> AbstractContextManager[None]:
        """Open a snapshot with a timeout for each statement."""
        return snapshot(settings={"statement_timeout": str(1000 * self.policy.scan_statement_seconds)})

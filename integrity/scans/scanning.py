"""A worker's side of the scans: a batch of conversations at a time, gently, and on from where it was left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import OperationalError, connection, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from conversations.models import Conversation
from conversations.scope import Scope
from conversations.sql import snapshot
from conversations.store.base import EVERYTHING
from integrity import models, reports
from integrity.examination import Examination, batches_of
from integrity.invariants import INVARIANTS
from integrity.policy import IntegrityPolicy
from integrity.repairs import repair_plans
from integrity.scans import changes
from integrity.scans import scan_rows as scans
from integrity.scans.scan_rows import ScanClaim
from integrity.signals import scan_due
from integrity.types import ScanMode

# A scan rests twice as long as it works, so that whoever writes meanwhile has the machine for most of the time.
REST = 2
LONGEST_REST_SECONDS = 60.0
# Forgotten at one sweep; the next one goes on.
MOST_FORGOTTEN = 100


@dataclass(frozen=True)
class ScanWorker:
    """Carries out scans, and asks for those that are due by the clock."""

    policy: IntegrityPolicy
    now: Callable[[], datetime] = timezone.now
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def from_settings(cls) -> ScanWorker:
        return cls(policy=IntegrityPolicy.from_settings())

    def work(self, *, scan_id: int | None = None) -> bool:
        """Do a stretch of the given scan, or of the next that is due; false if there was none to be had.

        Each batch is read at one moment of the database and written down with how far the scan is, so that another
        worker goes on from there. A scan that fails stays a row, and is tried again after a growing pause.
        """
        claim = scans.claim(scan_id)
        if claim is None:
            return False
        # Should this process die, this wake-up finds the scan when its lease has run out.
        scan_due.send(sender=None, scan_id=claim.scan.pk, delay_seconds=scans.LEASE.total_seconds() + 1.0)
        try:
            self._carry_out(claim)
        except scans.ScanLost:
            return True
        except Exception as failure:
            # The kind and not the words: an error's text may quote a message.
            claim.put_back(error=type(failure).__name__)
            raise
        return True

    def sweep(self) -> None:
        """Wake a worker for every scan that is due, ask for what is due by the clock, and forget what is old."""
        for scan_id in scans.due():
            scan_due.send(sender=None, scan_id=scan_id, delay_seconds=0.0)
        now = self.now()
        if self.policy.scan_interval_minutes:
            before = now - timedelta(minutes=self.policy.scan_interval_minutes)
            # Each of a workspace, so that its people see the report.
            for workspace_id in scans.workspaces_unscanned_since(before, ScanMode.INCREMENTAL):
                scans.request(Scope(workspace_id), conversation_id=None, mode=ScanMode.INCREMENTAL)
        if now.hour == self.policy.full_scan_hour:
            self._request_everything(now - timedelta(hours=2))
        self._forget(now - timedelta(days=self.policy.kept_report_days))

    def _forget(self, before: datetime) -> None:
        """Remove reports that led to no repair, and scans that are over, of before that moment; some at a time."""
        applied = models.RepairPlan.objects.filter(report_id=OuterRef("pk"), applied_at__isnull=False)
        reports = models.IntegrityReport.objects.filter(~Exists(applied), started_at__lt=before)
        over = models.IntegrityScan.objects.filter(finished_at__lt=before)
        for old in (reports, over):
            old.model.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:MOST_FORGOTTEN])).delete()

    def _request_everything(self, unless_since: datetime) -> None:
        """All conversations, a workspace at a time: its people see when theirs were looked through, and nobody else's.

        Behind them, what belongs to no workspace any more: only a scan of the whole site looks for that, and it passes
        over what the others have just looked through.
        """
        for workspace_id in scans.workspaces_unscanned_since(unless_since, ScanMode.FULL):
            scans.request(Scope(workspace_id), conversation_id=None, mode=ScanMode.FULL)
        last = scans.last_request(ScanMode.INCREMENTAL)
        if last is None or last <= unless_since:
            scans.request(EVERYTHING, conversation_id=None, mode=ScanMode.INCREMENTAL)

    def _carry_out(self, claim: ScanClaim) -> None:
        scan = claim.scan
        report = scan.report or self._begun(claim)
        deadline = time.monotonic() + self.policy.scan_seconds
        for batch in batches_of(self._left(scan)):
            self._look_at(batch, report, claim)
            if time.monotonic() >= deadline:
                claim.pause()
                return
            self.sleep(self.policy.scan_pause_ms / 1000)
        if scan.conversation_id is None:
            examined = Examination(INVARIANTS)
            with self._gently():
                examined.look_at_the_site(scan.workspace_id)
            reports.add(report, examined)
        reports.finish(report)
        claim.finish(repair_plans.make_plan(report) if scan.with_plan and not report.is_clean else None)

    def _begun(self, claim: ScanClaim) -> models.IntegrityReport:
        scan = claim.scan
        with transaction.atomic():
            report = reports.begin(
                mode=ScanMode(scan.mode),
                workspace_id=scan.workspace_id,
                conversation_id=scan.conversation_id,
                started_at=self.now(),
            )
            claim.advance(position=0, report=report)
        return report

    def _left(self, scan: models.IntegrityScan) -> QuerySet[Conversation]:
        """The conversations behind the scan's position."""
        rows = Scope(scan.workspace_id).narrow(Conversation.objects.filter(pk__gt=scan.position))
        if scan.conversation_id is not None:
            rows = rows.filter(pk=scan.conversation_id)
        if scan.mode != ScanMode.INCREMENTAL:
            return rows
        left = changes.since_last_clean(rows)
        # What the workspaces' own scans have found is in their reports, and counted once.
        return changes.not_looked_at_since(scan.requested_at, left) if scan.workspace_id is None else left

    def _look_at(self, batch: Mapping[int, int], report: models.IntegrityReport, claim: ScanClaim) -> None:
        """Look through a batch; where that takes too long, through each of it, and past those that still do."""
        examined = Examination(INVARIANTS, thorough=claim.scan.mode == ScanMode.FULL, rest=self._rest)
        looked_at = self.now()
        try:
            with self._gently():
                versions = changes.versions_of(batch)
                examined.look_at(batch)
        except OperationalError:
            if len(batch) > 1:
                for conversation_id, messages in batch.items():
                    self._look_at({conversation_id: messages}, report, claim)
                return
            examined, versions = Examination(()), {}
            report.unchecked += list(batch)
        with transaction.atomic():
            claim.advance(position=max(batch), report=report)
            reports.add(report, examined)
            changes.note(versions, examined, checked_at=looked_at)

    def _rest(self, worked_seconds: float) -> None:
        self.sleep(min(LONGEST_REST_SECONDS, REST * worked_seconds))

    @contextmanager
    def _gently(self) -> Iterator[None]:
        """One moment of the database, in which no question may take longer than it should."""
        with snapshot(), connection.cursor() as cursor:
            limit = f"{self.policy.scan_statement_seconds}s"
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [limit])
            yield

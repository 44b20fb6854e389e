"""Check every invariant against the rows, and report each violation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from conversations.models import Conversation, Quarantine
from conversations.models.columns import record_of
from conversations.scope import Scoped
from conversations.sql import first_row, load, snapshot
from conversations.store.pages import newest_first
from integrity import models, reports, scans
from integrity.examination import Examination, batches_of, changed_since_clean, note_checked, versions_of
from integrity.invariants import INVARIANTS, Invariant
from integrity.repairs import repair_plans
from integrity.types import (
    FindingRecord,
    IntegrityReport,
    IntegrityState,
    RepairPlanRecord,
    ReportOutline,
    ReportPage,
    ScanMode,
    ScanRecord,
    Severity,
)

_CHECKED = load("integrity/reports.sql")["checked_conversations"]
# Checks return few rows. The query planner expects many, and would avoid parallel workers because of their transfer.
PARALLEL = {"parallel_tuple_cost": "0"}


@dataclass(frozen=True)
class IntegrityChecker(Scoped):
    """Checks stored rows and keeps reports; it repairs nothing."""

    invariants: tuple[Invariant, ...] = tuple(INVARIANTS)

    def run(
        self, *, conversation_id: int | None = None, extent: ScanMode = ScanMode.FULL, with_plan: bool = False
    ) -> IntegrityReport:
        """Check one conversation, or all, for damage, and keep the report.

        Everything is read in one snapshot, so concurrent writes cause no findings. A full check reads everything. An
        incremental check reads the conversations that have changed since they were last found clean, and only a sample
        of token counts and files. `with_plan` plans repairs if anything is found. Raises NotFound.
        """
        started_at = timezone.now()
        rows = self.scope.narrow(Conversation.objects.all())
        if conversation_id is not None:
            rows = rows.filter(pk=self.scope.conversation(conversation_id).pk)
        if extent == ScanMode.INCREMENTAL:
            rows = changed_since_clean(rows)
        examined = Examination(self.invariants, thorough=extent == ScanMode.FULL)
        versions: dict[int, str] = {}
        with snapshot(settings=PARALLEL):
            for batch in batches_of(rows):
                versions |= versions_of(batch)
                examined.check(batch)
            if conversation_id is None:
                examined.check_site_rows(self.scope.workspace_id)
        with transaction.atomic():
            report = reports.begin(extent, self.scope.workspace_id, conversation_id, started_at)
            reports.add(report, examined)
            reports.finish(report)
            if len(self.invariants) == len(INVARIANTS):
                note_checked(versions, examined, checked_at=started_at)
        if with_plan and not report.is_clean:
            repair_plans.make_plan(report)
        return reports.report_record(report)

    def request(
        self, *, conversation_id: int | None = None, extent: ScanMode = ScanMode.FULL, with_plan: bool = False
    ) -> ScanRecord:
        """Check one conversation, or all, in the background.

        `with_plan` plans repairs if anything is found.
        """
        if conversation_id is not None:
            self.scope.conversation(conversation_id)
        scan = scans.request(self.scope, conversation_id=conversation_id, mode=extent, with_plan=with_plan)
        return scans.scan_record(scan)

    def get_scan(self, *, scan_id: int) -> ScanRecord:
        """Show a background check: its progress, report and plan. Raises NotFound."""
        return scans.scan_record(scans.scan_of(self.scope, scan_id))

    def get_state(self) -> IntegrityState:
        """Show how much was checked, when, and whether any damage is known."""
        counts = first_row(_CHECKED, {"workspace_id": self.scope.workspace_id})
        assert counts is not None, "it has one row"
        # Reports about the whole site belong to no workspace: for them, both sides of this condition are None.
        finished = models.IntegrityReport.objects.filter(
            conversation=None, workspace=self.scope.workspace_id, finished_at__isnull=False
        ).order_by("-started_at", "-report_id")
        newest = finished.first()
        # A check that skipped conversations does not count as a check of everything.
        whole = finished.filter(mode=ScanMode.FULL, unchecked=[]).first()
        findings = sum(newest.counts.values()) if newest else 0
        is_damaged = bool(findings or counts["conversations_with_findings"])
        return IntegrityState(
            **counts,
            finding_count=findings,
            messages_since_whole_check=max(0, counts["messages"] - (whole.messages_checked if whole else 0)),
            is_clean=False if is_damaged else True if whole else None,
            whole_report_id=whole.report_id if whole else None,
            whole_checked_at=whole.started_at if whole else None,
            newest_report_id=newest.report_id if newest else None,
        )

    def list_reports(
        self,
        *,
        conversation_id: int | None = None,
        extent: ScanMode | None = None,
        whole: bool = False,
        before_report: str | None = None,
        limit: int = 20,
    ) -> list[ReportOutline]:
        """List check reports, newest first, with counts but without findings.

        `whole` leaves out checks of single conversations. With extent `full` and `whole`, the first report shows when
        everything was last checked. Raises NotFound if there is no such conversation.
        """
        found = self.scope.filter_rows(
            models.IntegrityReport.objects.all(), conversation_id=conversation_id, mode=extent
        )
        if whole:
            found = found.filter(conversation=None)
        found = newest_first(found, before_report, partial(reports.report_of, self.scope), field="started_at")
        return [reports.outline_of(report) for report in found[:limit]]

    def get_report(self, *, report_id: str, code: str | None = None, after_id: int = 0, limit: int = 100) -> ReportPage:
        """Show a check report with a page of its findings. Raises NotFound.

        `code` lists only the findings of one invariant. All findings are counted; a report stores the first thousand of
        each invariant.
        """
        report = reports.report_of(self.scope, report_id)
        held = Quarantine.objects.filter(target=OuterRef("target"), released_at__isnull=True)
        listed = report.findings.filter(finding_id__gt=after_id).annotate(is_quarantined=Exists(held))
        if code is not None:
            listed = listed.filter(code=code)
        found = list(listed.order_by("finding_id")[: limit + 1])
        return ReportPage(
            report=reports.report_record(report),
            findings=tuple(
                record_of(FindingRecord, row, id=row.target, severity=Severity(row.severity)) for row in found[:limit]
            ),
            next_after_id=found[limit - 1].finding_id if len(found) > limit else None,
        )

    def plan_repairs(self, *, report_id: str, ledger_file_id: str | None = None) -> RepairPlanRecord:
        """Plan repair steps for a report's findings, with the values before and after.

        Nothing changes yet: a person approves steps, and only approved steps are applied. If `ledger_file_id` names a
        stored ledger, steps restore damaged and lost texts from it where they match the hashes. Raises NotFound;
        Conflict `report_unfinished` if the check is still running; Invalid `no_ledger`.
        """
        report = reports.report_of(self.scope, report_id)
        if ledger_file_id is not None:
            self.scope.file(ledger_file_id)
        return repair_plans.plan_record(repair_plans.make_plan(report, ledger_file_id=ledger_file_id or ""))

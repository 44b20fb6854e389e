"""Looks whether every promise holds, from the rows themselves, and says where one does not."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection, transaction
from django.utils import timezone

from conversations.errors import Invalid
from conversations.models import Conversation
from conversations.scope import Scope
from conversations.sql import snapshot
from conversations.store.base import EVERYTHING
from integrity import reports
from integrity.examination import Examination, batches_of
from integrity.invariants import INVARIANTS, Invariant
from integrity.repairs import repair_plans
from integrity.scans import changes
from integrity.scans import scan_rows as scans
from integrity.state import state_of
from integrity.types import (
    IntegrityReport,
    IntegrityState,
    RepairPlanRecord,
    ReportOutline,
    ReportPage,
    ScanMode,
    ScanRecord,
)


@dataclass(frozen=True)
class IntegrityChecker:
    """Checks what is stored, and keeps a report of what it found; changes nothing."""

    scope: Scope = EVERYTHING
    invariants: tuple[Invariant, ...] = tuple(INVARIANTS)

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> IntegrityChecker:
        return cls(scope=scope)

    def run(
        self, *, conversation_id: int | None = None, extent: ScanMode | str = ScanMode.FULL, with_plan: bool = False
    ) -> IntegrityReport:
        """Check one conversation, or all, and keep the report; NotFound if there is no such one.

        Everything is read at one moment of the database, so that writers at work cause no finding. A full check reads
        all there is; an incremental one looks at the conversations that have changed since they were last found clean,
        and counts the tokens and reads the files of a sample. `with_plan` plans repairs, if anything is found.
        """
        mode = _extent(extent)
        started_at = timezone.now()
        rows = self.scope.narrow(Conversation.objects.all())
        if conversation_id is not None:
            rows = rows.filter(pk=self.scope.conversation(conversation_id).pk)
        if mode is ScanMode.INCREMENTAL:
            rows = changes.since_last_clean(rows)
        examined = Examination(self.invariants, thorough=mode is ScanMode.FULL)
        versions: dict[int, str] = {}
        with snapshot():
            _call_all_hands()
            for batch in batches_of(rows):
                versions |= changes.versions_of(batch)
                examined.look_at(batch)
            if conversation_id is None:
                examined.look_at_the_site(self.scope.workspace_id)
        with transaction.atomic():
            report = reports.begin(
                mode=mode,
                workspace_id=self.scope.workspace_id,
                conversation_id=conversation_id,
                started_at=started_at,
            )
            reports.add(report, examined)
            reports.finish(report)
            if len(self.invariants) == len(INVARIANTS):
                changes.note(versions, examined, checked_at=started_at)
        if with_plan and not report.is_clean:
            repair_plans.make_plan(report)
        return reports.record_of(report, examined.found)

    def request(
        self, *, conversation_id: int | None = None, extent: ScanMode | str = ScanMode.FULL, with_plan: bool = False
    ) -> ScanRecord:
        """Have one conversation, or all, looked through in the background, and repairs planned if anything is found."""
        if conversation_id is not None:
            self.scope.conversation(conversation_id)
        scan = scans.request(self.scope, conversation_id=conversation_id, mode=_extent(extent), with_plan=with_plan)
        return scans.record_of(scan)

    def get_scan(self, *, scan_id: int) -> ScanRecord:
        """A check in the background: how far it is, and its report and plan; NotFound if there is none."""
        return scans.record_of(scans.scan_of(self.scope, scan_id))

    def get_state(self) -> IntegrityState:
        """Whether everything was checked, how much of it and when, and whether anything is known to be damaged."""
        return state_of(self.scope)

    def list_reports(
        self,
        *,
        conversation_id: int | None = None,
        extent: ScanMode | str | None = None,
        whole: bool = False,
        before_report: str | None = None,
        limit: int = 20,
    ) -> list[ReportOutline]:
        """What checks found, in figures, the newest first; of one conversation, or of all; of one extent, or of both.

        `whole` leaves out the checks of single conversations: with the extent `full`, the first of the others says when
        everything was last looked through. `before_report` continues behind the last of an earlier answer. NotFound if
        there is no such conversation or report.
        """
        if conversation_id is not None:
            self.scope.conversation(conversation_id)
        return reports.list_of(
            self.scope,
            conversation_id=conversation_id,
            mode=None if extent is None else _extent(extent),
            whole=whole,
            before_report=before_report,
            limit=limit,
        )

    def get_report(self, *, report_id: str, code: str | None = None, after_id: int = 0, limit: int = 100) -> ReportPage:
        """A report with its findings, of one invariant or of all, page by page; NotFound if there is none.

        Of each invariant the first thousand places are listed, and all are counted. `after_id` continues behind the
        last of an earlier page.
        """
        report = reports.report_of(self.scope, report_id)
        return reports.page_of(report, code=code, after_id=after_id, limit=limit)

    def plan_repairs(self, *, report_id: str, ledger_file_id: str | None = None) -> RepairPlanRecord:
        """What could be done about a report's findings, step by step, with what stands there now and what would.

        Nothing is touched: a person approves steps, and only those are carried out. With the id of a stored file that
        holds a ledger, what was damaged or lost is put back from it, as far as it fits the seals. Raises NotFound, and
        Conflict for a report that is not finished.
        """
        report = reports.report_of(self.scope, report_id)
        if ledger_file_id is not None:
            self.scope.file(ledger_file_id)
        return repair_plans.record_of(repair_plans.make_plan(report, ledger_file_id=ledger_file_id or ""))


def _extent(asked: ScanMode | str) -> ScanMode:
    try:
        return ScanMode(asked)
    except ValueError:
        raise Invalid(f"extent: {str(asked)[:80]!r} is none of {', '.join(ScanMode)}.") from None


def _call_all_hands() -> None:
    """Let the server's parallel workers look, too, until the transaction ends: somebody waits for this check.

    Left to itself, the planner expects them to pass on row after row, where what they find is nothing or little.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('parallel_tuple_cost', '0', true)")

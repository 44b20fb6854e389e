"""Keeps what checks found, and gives it back: the figures at once, the findings page by page."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from conversations.errors import NotFound
from conversations.models import Quarantine
from conversations.scope import Scope
from conversations.sql import rows
from conversations.store.pages import behind
from integrity import models, observability
from integrity.examination import Examination
from integrity.invariants import INVARIANTS, MOST_FINDINGS, MOST_KEPT, Found
from integrity.types import (
    Finding,
    FindingRecord,
    IntegrityReport,
    InvariantResult,
    ReportOutline,
    ReportPage,
    ScanMode,
    Severity,
)

logger = structlog.get_logger(__name__)

# Of each as many as are told, and no row more than that is looked at.
_FIRST = """
    SELECT asked.code, found.conversation_id, found.target, found.detail
    FROM unnest(%s::text[]) AS asked(code), LATERAL (
        SELECT finding_id, conversation_id, target, detail FROM integrity_findings
        WHERE report_id = %s AND code = asked.code ORDER BY finding_id LIMIT %s
    ) found
    ORDER BY found.finding_id
"""

_SEVERITIES = {invariant.code: invariant.severity for invariant in INVARIANTS}


def begin(
    *, mode: ScanMode, workspace_id: int | None, conversation_id: int | None, started_at: datetime
) -> models.IntegrityReport:
    """A report that says nothing yet."""
    return models.IntegrityReport.objects.create(
        report_id=f"report_{secrets.token_hex(8)}",
        workspace_id=workspace_id,
        conversation_id=conversation_id,
        mode=mode,
        started_at=started_at,
    )


def add(report: models.IntegrityReport, examined: Examination) -> None:
    """Write down what was found in some more conversations."""
    listed = []
    for code, found in examined.found.items():
        room = max(0, MOST_KEPT - report.counts.get(code, 0))
        listed += [_row(report, code, finding) for finding in found.findings[:room]]
        report.counts[code] = report.counts.get(code, 0) + found.count
    for code, milliseconds in examined.costs.items():
        report.costs[code] = report.costs.get(code, 0) + milliseconds
    models.Finding.objects.bulk_create(listed, batch_size=500)
    report.conversations_checked += examined.conversations
    report.messages_checked += examined.messages
    report.is_clean = not any(report.counts.values()) and not report.unchecked
    report.save()


def finish(report: models.IntegrityReport) -> None:
    """Close a report; what it found is an event in the log: where and how often, never what was said."""
    report.finished_at = timezone.now()
    report.save(update_fields=["finished_at"])
    if not report.is_clean:
        transaction.on_commit(partial(observability.reported, report.counts))
        logger.error(
            "integrity_failed",
            report_id=report.report_id,
            conversation_id=report.conversation_id,
            findings={code: count for code, count in report.counts.items() if count},
            unchecked=len(report.unchecked),
        )


def report_of(scope: Scope, report_id: str) -> models.IntegrityReport:
    """The row of a report; NotFound if there is none that the scope may see."""
    reports = scope.narrow(models.IntegrityReport.objects.all())
    report = reports.filter(report_id=report_id).first() if report_id.isprintable() else None
    if report is None:
        raise NotFound(f"There is no report {report_id[:80]!r} that you may see.")
    return report


def list_of(
    scope: Scope,
    *,
    conversation_id: int | None,
    mode: ScanMode | None,
    whole: bool,
    before_report: str | None,
    limit: int,
) -> list[ReportOutline]:
    """The newest reports first; those behind one of them."""
    reports = scope.narrow(models.IntegrityReport.objects.order_by("-started_at", "-report_id"))
    if conversation_id is not None:
        reports = reports.filter(conversation_id=conversation_id)
    if mode is not None:
        reports = reports.filter(mode=mode)
    if whole:
        reports = reports.filter(conversation=None)
    if before_report is not None:
        last = report_of(scope, before_report)
        reports = reports.filter(behind(field="started_at", moment=last.started_at, key=last.report_id))
    return [outline_of(report) for report in reports[:limit]]


def page_of(report: models.IntegrityReport, *, code: str | None, after_id: int, limit: int) -> ReportPage:
    """The report with so many of its findings, of one invariant or of all."""
    held = Quarantine.objects.filter(target=OuterRef("target"), released_at__isnull=True)
    listed = (
        report.findings.filter(finding_id__gt=after_id).annotate(is_quarantined=Exists(held)).order_by("finding_id")
    )
    if code is not None:
        listed = listed.filter(code=code)
    found = list(listed[: limit + 1])
    more = len(found) > limit
    return ReportPage(
        report=record_of(report, first_findings(report)),
        findings=tuple(_finding_record(row) for row in found[:limit]),
        next_after_id=found[limit - 1].finding_id if more else None,
    )


def outline_of(report: models.IntegrityReport) -> ReportOutline:
    """What it looked at until now, and in how many places something does not hold."""
    return ReportOutline(**_figures(report))


def record_of(report: models.IntegrityReport, found: Mapping[str, Found]) -> IntegrityReport:
    """The report as it is told, with the first places of each invariant."""
    return IntegrityReport(
        **_figures(report),
        invariants=tuple(
            InvariantResult(
                code=invariant.code,
                severity=invariant.severity,
                sentence=invariant.sentence,
                count=report.counts[invariant.code],
                findings=found.get(invariant.code, Found()).findings[:MOST_FINDINGS],
                milliseconds=report.costs.get(invariant.code, 0),
            )
            for invariant in INVARIANTS
            if invariant.code in report.counts
        ),
        unchecked=tuple(report.unchecked),
        repair_id=report.plans.order_by("-created_at").values_list("plan_id", flat=True).first(),
    )


def first_findings(report: models.IntegrityReport) -> dict[str, Found]:
    """The first places of each invariant, from the rows: in one question, however many did not hold."""
    places: dict[str, list[Finding]] = {code: [] for code, count in report.counts.items() if count}
    for code, *place in rows(_FIRST, [list(places), report.report_id, MOST_FINDINGS]) if places else ():
        places[code].append(Finding(*place))
    return {code: Found(count=report.counts[code], findings=tuple(found)) for code, found in places.items()}


def _row(report: models.IntegrityReport, code: str, finding: Finding) -> models.Finding:
    return models.Finding(
        report=report,
        code=code,
        severity=_SEVERITIES[code],
        conversation_id=finding.conversation_id,
        target=finding.id,
        detail=finding.detail,
    )


def _finding_record(row: Any) -> FindingRecord:
    return FindingRecord(
        finding_id=row.finding_id,
        code=row.code,
        severity=Severity(row.severity),
        conversation_id=row.conversation_id,
        id=row.target,
        detail=row.detail,
        is_quarantined=row.is_quarantined,
    )


def _figures(report: models.IntegrityReport) -> dict[str, Any]:
    return {
        "report_id": report.report_id,
        "extent": ScanMode(report.mode),
        "conversation_id": report.conversation_id,
        "started_at": report.started_at,
        "finished_at": report.finished_at,
        "conversations_checked": report.conversations_checked,
        "messages_checked": report.messages_checked,
        "finding_count": sum(report.counts.values()),
        "is_clean": report.is_clean,
    }

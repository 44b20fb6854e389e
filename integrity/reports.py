"""Store the reports of checks, and read each with its first findings."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from functools import partial

import structlog
from django.db import transaction
from django.utils import timezone
from prometheus_client import Counter

from conversations.models.columns import record_of
from conversations.scope import Scope
from conversations.sql import load, rows
from integrity import models
from integrity.examination import Examination
from integrity.invariants import INVARIANTS, MOST_FINDINGS, MOST_KEPT
from integrity.types import Finding, IntegrityReport, InvariantResult, ReportOutline, ScanMode

logger = structlog.get_logger(__name__)

SQL = load("integrity/reports.sql")
_SEVERITIES = {invariant.code: invariant.severity for invariant in INVARIANTS}

FAILURES = Counter(
    "lcm_integrity_failures_total",
    "Findings of finished reports, by invariant; a finding counts in each report that lists it.",
    ["code"],
)
for _code in _SEVERITIES:
    FAILURES.labels(_code)


def begin(
    mode: ScanMode, workspace_id: int | None, conversation_id: int | None, started_at: datetime
) -> models.IntegrityReport:
    """Create an empty report."""
    return models.IntegrityReport.objects.create(
        report_id=f"report_{secrets.token_hex(8)}",
        workspace_id=workspace_id,
        conversation_id=conversation_id,
        mode=mode,
        started_at=started_at,
    )


def add(report: models.IntegrityReport, examined: Examination) -> None:
    """Add the findings of a batch of conversations."""
    listed = []
    for code, found in examined.found.items():
        room = max(0, MOST_KEPT - report.counts.get(code, 0))
        listed += [
            models.Finding(
                report=report,
                code=code,
                severity=_SEVERITIES[code],
                conversation_id=finding.conversation_id,
                target=finding.id,
                detail=finding.detail,
            )
            for finding in found.findings[:room]
        ]
        report.counts[code] = report.counts.get(code, 0) + found.count
    for code, milliseconds in examined.costs.items():
        report.costs[code] = report.costs.get(code, 0) + milliseconds
    models.Finding.objects.bulk_create(listed, batch_size=500)
    report.conversations_checked += examined.conversations
    report.messages_checked += examined.messages
    report.is_clean = not any(report.counts.values()) and not report.unchecked
    report.save()


def finish(report: models.IntegrityReport) -> None:
    """Close a report, and log the number of findings of each invariant."""
    report.finished_at = timezone.now()
    report.save(update_fields=["finished_at"])
    if not report.is_clean:
        transaction.on_commit(partial(_count_failures, report.counts))
        logger.error(
            "integrity_failed",
            report_id=report.report_id,
            conversation_id=report.conversation_id,
            findings={code: count for code, count in report.counts.items() if count},
            unchecked=len(report.unchecked),
        )


def _count_failures(counts: Mapping[str, int]) -> None:
    for code, count in counts.items():
        FAILURES.labels(code).inc(count)


def report_of(scope: Scope, report_id: str) -> models.IntegrityReport:
    """Return the row of a report; raises NotFound if the scope does not have it."""
    return scope.find(models.IntegrityReport.objects.all(), "report", report_id, pk=report_id)


def outline_of(report: models.IntegrityReport) -> ReportOutline:
    """Return the counts of a report, which may be unfinished."""
    return record_of(ReportOutline, report, extent=ScanMode(report.mode), finding_count=sum(report.counts.values()))


def report_record(report: models.IntegrityReport) -> IntegrityReport:
    """Return the report with the first findings of each invariant."""
    findings = _first_findings(report)
    return IntegrityReport(
        **vars(outline_of(report)),
        invariants=tuple(
            InvariantResult(
                code=invariant.code,
                severity=invariant.severity,
                sentence=invariant.sentence,
                count=report.counts[invariant.code],
                findings=tuple(findings[invariant.code]),
                milliseconds=report.costs.get(invariant.code, 0),
            )
            for invariant in INVARIANTS
            if invariant.code in report.counts
        ),
        unchecked=tuple(report.unchecked),
        repair_id=report.plans.order_by("-created_at").values_list("plan_id", flat=True).first(),
    )


def _first_findings(report: models.IntegrityReport) -> Mapping[str, list[Finding]]:
    """Read the first findings of each violated invariant in one query."""
    findings: dict[str, list[Finding]] = defaultdict(list)
    if broken := [code for code, count in report.counts.items() if count]:
        for code, *values in rows(SQL["first_findings"], [broken, report.report_id, MOST_FINDINGS]):
            findings[code].append(Finding(*values))
    return findings

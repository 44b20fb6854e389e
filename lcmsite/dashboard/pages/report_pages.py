"""Integrity reports, their findings, and checks in the background."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect

from conversations.errors import NotFound
from integrity.types import ReportPage, ScanMode, ScanRecord, Severity
from lcmsite.dashboard.parts.findings import message_in
from lcmsite.dashboard.visit import POST, Visit, number_in, page, texts_in

ON_A_PAGE = 20
# The number of findings of one invariant on a page.
FINDINGS = 100

_GRAVEST_FIRST = list(Severity)


@page()
def reports(visit: Visit) -> HttpResponse:
    """The reports of the workspace, newest first, and the form for a new check."""
    return visit.show(
        "trust/reports.html",
        integrity=visit.call("lcm_integrity"),
        paged=visit.list_page("lcm_reports", limit=ON_A_PAGE),
        extents=list(ScanMode),
    )


@page()
def report(visit: Visit, report_id: str) -> HttpResponse:
    """One report, most severe findings first; or all findings of one invariant."""
    code = visit.request.GET.get("code") or None
    after = number_in(visit.request.GET, "after") or 0
    found: ReportPage = visit.call(
        "lcm_report", report_id=report_id, code=code, after_id=after, limit=FINDINGS if code else 1
    )
    if code:
        invariant = next((each for each in found.report.invariants if each.code == code), None)
        if invariant is None:
            raise NotFound(f"{report_id} has no invariant {code[:80]!r}.")
        return visit.show(
            "trust/findings.html",
            report=found.report,
            result=invariant,
            findings=found.findings,
            after=after,
            next_after=found.next_after_id,
        )
    gravest = sorted(found.report.broken, key=lambda each: (_GRAVEST_FIRST.index(each.severity), each.code))
    return visit.show(
        "trust/report.html",
        report=found.report,
        broken=gravest,
        invariants=sorted(found.report.invariants, key=lambda each: -each.milliseconds),
        milliseconds=sum(each.milliseconds for each in found.report.invariants),
    )


@page(methods=POST)
def begin_scan(visit: Visit) -> HttpResponse:
    """Start a check in the background; `scan` shows its progress."""
    given = visit.request.POST
    wants_plan = bool(given.get("with_plan")) and visit.may("lcm_plan_repairs")
    begun: ScanRecord = visit.call(
        "lcm_check",
        in_text=texts_in(given, ("conversation_id", "extent")),
        with_plan=wants_plan,
        background=True,
    )
    if visit.is_part:
        return visit.show("trust/_scan.html", **_progress(visit, begun))
    return visit.redirect("scan", scan_id=begun.scan_id)


@page()
def scan(visit: Visit, scan_id: int) -> HttpResponse:
    template = "trust/_scan.html" if visit.is_part else "trust/scan.html"
    return visit.show(template, **_progress(visit, visit.call("lcm_scan", scan_id=scan_id)))


@page()
def redirect_to_message(visit: Visit) -> HttpResponse:
    """Redirect from the id of a message to its position in the transcript."""
    id = visit.request.GET.get("id", "")
    message_id = message_in(id)
    if message_id is None:
        raise NotFound(f"There is no page for {id[:80]!r}.")
    message = visit.call("lcm_message", message_id=message_id)
    here = {"workspace": visit.workspace.name, "conversation_id": message.conversation_id}
    answer = redirect("transcript", **here)
    answer["Location"] += f"?seq={message.seq}"
    return answer


def _progress(visit: Visit, scan: ScanRecord) -> dict[str, Any]:
    """The scan, its report so far, and the number of conversations, if known."""
    is_of_all = scan.conversation_id is None and scan.extent is ScanMode.FULL
    is_at_it = scan.report is not None and scan.finished_at is None
    total = visit.call("lcm_browse", limit=1).total if is_of_all and is_at_it else None
    return {"scan": scan, "report": scan.report, "total": total}

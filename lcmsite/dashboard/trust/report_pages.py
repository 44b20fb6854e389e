"""What checks found: the reports, one of them with its findings by invariant, and checks in the background."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect

from conversations.errors import NotFound
from integrity.types import InvariantResult, ReportOutline, ReportPage, ScanMode, ScanRecord, Severity
from lcmsite.dashboard.page import Visit, page
from lcmsite.dashboard.parts.addresses import number_in
from lcmsite.dashboard.parts.pager import paged
from lcmsite.dashboard.service import ask, may
from lcmsite.dashboard.trust.explanations import meaning_of
from lcmsite.dashboard.trust.place_links import message_in

ON_A_PAGE = 20
# Of one invariant, at a time.
FINDINGS = 100

_GRAVEST_FIRST = list(Severity)


@page()
def reports(visit: Visit) -> HttpResponse:
    """The newest reports of the workspace, or those behind one, and the way to a new one."""
    before = visit.request.GET.get("before") or None
    found: list[ReportOutline] = ask(visit.caller, "lcm_reports", before_report=before, limit=ON_A_PAGE + 1)
    return visit.show(
        "dashboard/trust/reports.html",
        integrity=ask(visit.caller, "lcm_integrity"),
        paged=paged(found, most=ON_A_PAGE, key="report_id", before=before),
        may_plan=may(visit.caller, "lcm_plan_repairs"),
        extents=list(ScanMode),
    )


@page()
def report(visit: Visit, report_id: str) -> HttpResponse:
    """One report: what does not hold, gravest first, and what it took to know; or all places of one invariant."""
    code = visit.request.GET.get("code") or None
    after = number_in(visit.request.GET, "after") or 0
    found: ReportPage = ask(
        visit.caller, "lcm_report", report_id=report_id, code=code, after_id=after, limit=FINDINGS if code else 1
    )
    told: dict[str, Any] = {"report": found.report, "may_plan": may(visit.caller, "lcm_plan_repairs")}
    if code:
        invariant = next((each for each in found.report.invariants if each.code == code), None)
        if invariant is None:
            raise NotFound(f"{report_id} says nothing of an invariant {code[:80]!r}.")
        return visit.show(
            "dashboard/trust/findings.html",
            **told,
            group=_explained(invariant),
            findings=found.findings,
            after=after,
            next_after=found.next_after_id,
        )
    gravest = sorted(found.report.broken, key=lambda each: (_GRAVEST_FIRST.index(each.severity), each.code))
    return visit.show(
        "dashboard/trust/report.html",
        **told,
        broken=[_explained(each) for each in gravest],
        invariants=sorted(found.report.invariants, key=lambda each: -each.milliseconds),
        milliseconds=sum(each.milliseconds for each in found.report.invariants),
    )


@page(methods=("POST",))
def begin_scan(visit: Visit) -> HttpResponse:
    """Have a worker check the workspace, or one conversation; how it goes is told by `scan`."""
    given = visit.request.POST
    conversation_id = number_in(given, "conversation_id")
    wants_plan = bool(given.get("with_plan")) and may(visit.caller, "lcm_plan_repairs")
    begun: ScanRecord = ask(
        visit.caller,
        "lcm_check",
        conversation_id=conversation_id,
        extent=given.get("extent") or None,
        with_plan=wants_plan,
        background=True,
    )
    if visit.is_part:
        return visit.show("dashboard/trust/_scan.html", **_progress(visit, begun))
    return redirect("scan", workspace=visit.workspace.name, scan_id=begun.scan_id)


@page()
def scan(visit: Visit, scan_id: int) -> HttpResponse:
    """How a check in the background goes, until it is over."""
    template = "dashboard/trust/_scan.html" if visit.is_part else "dashboard/trust/scan.html"
    return visit.show(template, **_progress(visit, ask(visit.caller, "lcm_scan", scan_id=scan_id)))


@page()
def place(visit: Visit) -> HttpResponse:
    """To the message that a finding names by its id."""
    id = visit.request.GET.get("id", "")
    message_id = message_in(id)
    if message_id is None:
        raise NotFound(f"There is no page about {id[:80]!r}.")
    message = ask(visit.caller, "lcm_message", message_id=message_id)
    here = {"workspace": visit.workspace.name, "conversation_id": message.conversation_id}
    answer = redirect("transcript", **here)
    answer["Location"] += f"?seq={message.seq}"
    return answer


def _explained(result: InvariantResult) -> dict[str, Any]:
    return {"result": result, "meaning": meaning_of(result.code)}


def _progress(visit: Visit, scan: ScanRecord) -> dict[str, Any]:
    """How far a scan is: what its report says that it has looked at, of all that there is."""
    is_of_all = scan.conversation_id is None and scan.extent is ScanMode.FULL
    is_at_it = scan.report is not None and scan.finished_at is None
    total = ask(visit.caller, "lcm_browse", limit=1).total if is_of_all and is_at_it else None
    return {"scan": scan, "report": scan.report, "total": total}

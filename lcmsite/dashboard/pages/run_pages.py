"""Compaction runs and background jobs, of a workspace or a conversation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse

from compaction.types import JobState, Outcome, Reason, RunRecord
from lcmsite.dashboard.page import Visit, number_in, page
from lcmsite.dashboard.parts.pager import paged

ON_A_PAGE = 50
OF_A_CONVERSATION = 20


@page()
def runs(visit: Visit) -> HttpResponse:
    """The runs of the workspace, newest first; of one outcome or reason if chosen."""
    given = visit.request.GET
    filters = {"outcome": _among(given.get("outcome"), Outcome), "reason": _among(given.get("reason"), Reason)}
    before = given.get("before") or None
    found = visit.ask("lcm_runs", before_run=before, limit=ON_A_PAGE + 1, **filters)
    shown = paged(found, most=ON_A_PAGE, key="run_id", before=before, filters=filters)
    return visit.show(
        "dashboard/_runs.html" if visit.is_part else "dashboard/runs.html",
        paged=shown,
        runs=_rows(shown.rows),
        filters=filters,
        outcomes=list(Outcome),
        reasons=list(Reason),
    )


@page()
def jobs(visit: Visit) -> HttpResponse:
    """The jobs of the workspace, newest first; of one state if chosen."""
    given = visit.request.GET
    filters = {"state": _among(given.get("state"), JobState)}
    before = number_in(given, "before")
    found = visit.ask("lcm_jobs", before_id=before, limit=ON_A_PAGE + 1, **filters)
    return visit.show(
        "dashboard/_jobs.html" if visit.is_part else "dashboard/jobs.html",
        paged=paged(found, most=ON_A_PAGE, key="job_id", before=before, filters=filters),
        filters=filters,
        states=list(JobState),
    )


@page()
def jobs_of_conversation(visit: Visit, conversation_id: int) -> HttpResponse:
    """The latest jobs of one conversation."""
    found = visit.ask("lcm_jobs", conversation_id=conversation_id, limit=OF_A_CONVERSATION)
    shown = paged(found, most=OF_A_CONVERSATION, key="job_id", before=None)
    return visit.show("dashboard/_jobs.html", conversation=conversation_id, paged=shown)


@page()
def of_conversation(visit: Visit, conversation_id: int) -> HttpResponse:
    """The runs of one conversation; its jobs are loaded afterwards."""
    conversation = visit.ask("lcm_show", conversation_id=conversation_id)
    before = visit.request.GET.get("before") or None
    found = visit.ask("lcm_runs", conversation_id=conversation_id, before_run=before, limit=OF_A_CONVERSATION + 1)
    shown = paged(found, most=OF_A_CONVERSATION, key="run_id", before=before)
    return visit.show(
        "dashboard/conversation_runs.html", conversation=conversation, paged=shown, runs=_rows(shown.rows)
    )


def _rows(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Each run with its details as JSON."""
    return [
        {"run": run, "details": json.dumps(run.details, ensure_ascii=False, indent=2) if run.details else ""}
        for run in runs
    ]


def _among(given: str | None, known: type[Outcome] | type[Reason] | type[JobState]) -> str | None:
    return given if given in list(known) else None

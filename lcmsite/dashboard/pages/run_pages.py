"""Compaction runs, jobs, plans, boundaries of agent programs (hosts), map runs."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from compaction.types import JobState, Outcome, PlanRecord, Reason, RunRecord
from conversations.errors import NotFound
from conversations.humanize import counted
from conversations.work.queue import WorkState
from lcmsite.dashboard.visit import POST, ListPage, Visit, choices_in, page
from lcmsite.types import KeyScope
from retrieval.map.types import MapState

OF_A_CONVERSATION = 20
# Maximum number of events on the page of a map run.
MOST_EVENTS = 50
# The notice after an action on a map run, by the last segment of the URL.
ACTS = {"pause": "Paused.", "resume": "Resumed.", "cancel": "Cancelled.", "retry-failed": "Queued again."}


@page()
def runs(visit: Visit) -> HttpResponse:
    """The compaction runs of the workspace, newest first; by outcome and reason."""
    filters = choices_in(visit.request.GET, outcome=Outcome, reason=Reason)
    return visit.show(
        "_runs.html" if visit.is_part else "runs.html",
        paged=visit.list_page("lcm_runs", filters=filters, **filters),
        filters=filters,
        outcomes=list(Outcome),
        reasons=list(Reason),
    )


@page(KeyScope.WRITE, POST)
def backfill(visit: Visit) -> HttpResponse:
    """Queue the compactions that were skipped as not worth a summary."""
    requested = visit.call("lcm_backfill")
    return visit.redirect("jobs", done=f"{counted(len(requested), 'compaction')} requested.")


@page()
def boundaries(visit: Visit, conversation_id: int) -> HttpResponse:
    """Boundaries where a host cut its context; as a part, the coverage up to one."""
    reference = visit.request.GET.get("host_reference") or None
    if visit.is_part:
        coverage = visit.call("lcm_coverage", conversation_id=conversation_id, host_reference=reference)
        return visit.show("_coverage.html", coverage=coverage)
    chosen = {"host_reference": reference}
    return visit.show(
        "boundaries.html",
        conversation=visit.call("lcm_show", conversation_id=conversation_id),
        paged=visit.list_page(
            "lcm_boundaries", limit=OF_A_CONVERSATION, filters=chosen, conversation_id=conversation_id
        ),
        reference=reference,
    )


@page()
def jobs(visit: Visit) -> HttpResponse:
    """The jobs of the workspace, newest first, filtered by state."""
    return _show_by_state(visit, "lcm_jobs", JobState, whole="jobs.html", part="_jobs.html")


@page()
def history_jobs(visit: Visit) -> HttpResponse:
    """Jobs that make session, arc and epoch summaries, filtered by state."""
    return _show_by_state(visit, "lcm_history_jobs", JobState, whole="history/jobs.html", part="history/_jobs.html")


def _show_by_state(
    visit: Visit, tool: str, states: type[JobState | MapState], *, whole: str, part: str
) -> HttpResponse:
    """A list of the workspace, filtered by state, as a page or a part."""
    filters = choices_in(visit.request.GET, state=states)
    return visit.show(
        part if visit.is_part else whole,
        paged=visit.list_page(tool, filters=filters, **filters),
        filters=filters,
        states=list(states),
    )


@page()
def jobs_of_conversation(visit: Visit, conversation_id: int) -> HttpResponse:
    latest = visit.call("lcm_jobs", conversation_id=conversation_id, limit=OF_A_CONVERSATION)
    return visit.show("_jobs.html", conversation=conversation_id, paged=ListPage(latest))


@page()
def runs_of_conversation(visit: Visit, conversation_id: int) -> HttpResponse:
    """The compaction runs of one conversation; its jobs are loaded afterwards."""
    return visit.show(
        "conversation_runs.html",
        conversation=visit.call("lcm_show", conversation_id=conversation_id),
        paged=visit.list_page("lcm_runs", limit=OF_A_CONVERSATION, conversation_id=conversation_id),
    )


@page()
def plans(visit: Visit, conversation_id: int) -> HttpResponse:
    return visit.show(
        "plan.html",
        conversation=visit.call("lcm_show", conversation_id=conversation_id),
        paged=visit.list_page("lcm_plans", limit=OF_A_CONVERSATION, conversation_id=conversation_id),
    )


@page(KeyScope.WRITE, POST)
def make_plan(visit: Visit, conversation_id: int) -> HttpResponse:
    plan = visit.call("lcm_plan", conversation_id=conversation_id)
    return visit.redirect("plan", conversation_id=conversation_id, plan_id=plan.plan_id)


@page()
def plan(visit: Visit, conversation_id: int, plan_id: str) -> HttpResponse:
    conversation = visit.call("lcm_show", conversation_id=conversation_id)
    return visit.show("plan.html", conversation=conversation, **_progress(visit, conversation_id, plan_id))


@page(KeyScope.WRITE, POST)
def execute_plan(visit: Visit, conversation_id: int, plan_id: str) -> HttpResponse:
    """Queue the execution of a plan; `plan_progress` shows its progress."""
    _plan_of(visit, conversation_id, plan_id)
    visit.call("lcm_execute_plan", plan_id=plan_id, background=True)
    if visit.is_part:
        return visit.show("_plan_progress.html", **_progress(visit, conversation_id, plan_id))
    return visit.redirect("plan", conversation_id=conversation_id, plan_id=plan_id)


@page()
def plan_progress(visit: Visit, conversation_id: int, plan_id: str) -> HttpResponse:
    return visit.show("_plan_progress.html", **_progress(visit, conversation_id, plan_id))


def _plan_of(visit: Visit, conversation_id: int, plan_id: str) -> PlanRecord:
    plan: PlanRecord = visit.call("lcm_show_plan", plan_id=plan_id)
    if plan.conversation_id != conversation_id:
        raise NotFound(f"There is no plan {plan_id[:80]!r} of this conversation.")
    return plan


def _progress(visit: Visit, conversation_id: int, plan_id: str) -> dict[str, Any]:
    plan = _plan_of(visit, conversation_id, plan_id)
    run: RunRecord | None = visit.call("lcm_run", run_id=plan.run_id) if plan.run_id else None
    return {
        "plan": plan,
        "run": run,
        "made": run.leaf_summaries + run.condensed_summaries if run else 0,
        "is_under_way": (plan.requested_at and not plan.refusal and not plan.executed_at)
        or (run is not None and run.finished_at is None),
        "conversation_id": conversation_id,
    }


@page()
def map_runs(visit: Visit) -> HttpResponse:
    """The map runs of the workspace, newest first, filtered by state."""
    return _show_by_state(visit, "lcm_map_runs", MapState, whole="map_runs.html", part="_map_runs.html")


@page()
def map_run(visit: Visit, map_run_id: str) -> HttpResponse:
    """One map run: its progress, its items by state, and its first events."""
    filters = choices_in(visit.request.GET, state=WorkState)
    run = visit.call("lcm_map_status", run_id=map_run_id)
    return visit.show(
        "_map_items.html" if visit.is_part else "map_run.html",
        run=run,
        paged=visit.list_page("lcm_map_items", filters=filters, run_id=map_run_id, **filters),
        events=() if visit.is_part else visit.call("lcm_map_record", run_id=map_run_id, limit=MOST_EVENTS),
        filters=filters,
        states=list(WorkState),
    )


@page()
def map_progress(visit: Visit, map_run_id: str) -> HttpResponse:
    """The progress of a map run; the page reloads when its state changes."""
    run = visit.call("lcm_map_status", run_id=map_run_id)
    answer = visit.show("_map_progress.html", run=run)
    if run.state != visit.request.GET.get("state"):
        answer["HX-Refresh"] = "true"
    return answer


@page(KeyScope.WRITE, POST)
def steer_map_run(visit: Visit, map_run_id: str, act: str) -> HttpResponse:
    """Pause, resume or cancel a map run, or retry its failed items."""
    if act not in ACTS:
        raise NotFound(f"Map runs have no action {act[:80]!r}.")
    visit.call(f"lcm_map_{act.replace('-', '_')}", run_id=map_run_id)
    return visit.redirect("map-run", done=ACTS[act], map_run_id=map_run_id)

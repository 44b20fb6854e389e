"""Runs, jobs and plans as pages: listed, narrowed, and a plan told before it is done."""

from __future__ import annotations

import pytest
from django.utils import timezone

from compaction.engine import CompactionEngine
from compaction.hosts.host_service import HostCompaction
from compaction.models import CompactionJob, CompactionPlan, CompactionRun
from compaction.plans.plan_store import CompactionPlans
from compaction.types import JobState, Outcome, Reason
from conversations.scope import Scope
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.dashboard.visiting import as_part, page_of, shown_links

TEXTS = [f"Message {number} about the harbour and its boats. " * 30 for number in range(40)]


@pytest.fixture(scope="module")
def conversation_id(module_rows: None) -> int:
    return a_conversation(*TEXTS).conversation_id


@pytest.fixture
def engine(db: None) -> CompactionEngine:
    return CompactionEngine.from_settings(Scope(a_workspace().pk))


def test_runs_and_jobs_are_narrowed_and_a_run_leads_to_the_lineage_as_it_left_it(conversation_id, engine, reader):
    run_id = engine.compact(conversation_id=conversation_id).run_id
    engine.request(conversation_id=conversation_id)
    CompactionJob.objects.update(state=JobState.FAILED, last_error="OperationalError", attempts=8)
    CompactionRun.objects.update(job=CompactionJob.objects.get())
    part = {"headers": {"HX-Request": "true"}}

    compacted = reader.get("/w/default/runs/?outcome=compacted&reason=manual", **part).content.decode()
    failed = reader.get("/w/default/runs/?outcome=failed", **part).content.decode()
    lineage = f"/w/default/conversations/{conversation_id}/lineage/?run={run_id}"
    jobs = reader.get("/w/default/runs/jobs/?state=failed", **part).content.decode()
    queued = reader.get("/w/default/runs/jobs/?state=queued", **part).content.decode()

    assert lineage in compacted and "<html" not in compacted
    assert f"<code>{run_id}</code>" in page_of(reader, lineage)
    assert "No run matches." in failed
    assert "OperationalError" in jobs and "No job matches." in queued
    assert f"/w/default/conversations/{conversation_id}/runs/#{run_id}" in shown_links(jobs)


def test_a_plan_is_told_and_then_done_by_a_worker(conversation_id, operator):
    path = f"/w/default/conversations/{conversation_id}/plans/"

    told = operator.post(f"{path}new/", follow=True).content.decode()
    plan = CompactionPlan.objects.get()
    waiting = operator.post(f"{path}{plan.pk}/execution/", headers={"HX-Request": "true"}).content.decode()
    CompactionPlans.from_settings().execute_queued(plan_id=plan.pk)
    done = operator.get(f"{path}{plan.pk}/progress/").content.decode()

    assert "Execute this plan" in told and "Steps" in told
    assert "for a worker" in waiting and "/progress/" in waiting
    assert "Executed" in done and "/progress/" not in done
    assert CompactionRun.objects.get().details["plan_id"] == plan.pk


def test_a_plan_that_no_longer_fits_says_so(conversation_id, operator, engine):
    path = f"/w/default/conversations/{conversation_id}/plans/"
    operator.post(f"{path}new/")
    plan = CompactionPlan.objects.get()
    engine.compact(conversation_id=conversation_id)

    operator.post(f"{path}{plan.pk}/execution/")
    CompactionPlans.from_settings().execute_queued(plan_id=plan.pk)
    page = operator.get(f"{path}{plan.pk}/").content.decode()

    assert "plan_outdated" in page and "have changed. Make a new plan" in page


def test_a_reader_reads_plans_and_is_told_who_makes_them(conversation_id, reader):
    path = f"/w/default/conversations/{conversation_id}/plans/"
    plan_id = CompactionPlans.from_settings().plan(conversation_id=conversation_id).plan_id

    pages = [reader.get(path).content.decode(), reader.get(f"{path}{plan_id}/").content.decode()]

    assert all("Operators and admins" in page for page in pages)
    assert not any("Execute this plan" in page or "Plan a compaction" in page for page in pages)
    assert reader.post(f"{path}new/").status_code == 403
    assert reader.post(f"{path}{plan_id}/execution/").status_code == 403
    assert CompactionPlan.objects.get().requested_at is None


def test_a_plan_is_of_its_conversation(conversation_id, reader):
    other = a_conversation("another").conversation_id
    plan_id = CompactionPlans.from_settings().plan(conversation_id=conversation_id).plan_id

    answers = [reader.get(f"/w/default/conversations/{other}/plans/{each}/") for each in (plan_id, "plan_0")]

    assert [answer.status_code for answer in answers] == [404, 404]


def test_boundaries_of_hosts_are_listed_with_the_coverage_up_to_each(reader, monkeypatch):
    monkeypatch.setattr("lcmsite.dashboard.pages.run_pages.OF_A_CONVERSATION", 1)
    conversation_id = a_conversation(*(f"message {n}" for n in range(1, 9))).conversation_id
    page = f"/w/default/conversations/{conversation_id}/boundaries/"
    empty, whole = page_of(reader, page), as_part(reader, page)
    host = HostCompaction.from_settings(Scope(a_workspace().pk))
    for seq, reference in ((3, "cut"), (5, "cut & one")):
        host.record_boundary(conversation_id=conversation_id, host_reference=reference, last_seq=seq)

    listed = page_of(reader, page)
    [check] = [link for link in shown_links(listed) if "host_reference" in link]

    assert "No host has recorded a boundary" in empty and "Up to message 8" in whole and "complete" in whole
    assert "cut &amp; one" in listed and f'hx-get="{check}"' in page_of(reader, page + check)
    assert "Up to message 5, the boundary" in as_part(reader, page + check)
    assert "?host_reference=cut+%26+one&amp;cursor=" in page_of(reader, page + check)
    assert page in shown_links(page_of(reader, f"/w/default/conversations/{conversation_id}/runs/"))


def test_what_was_skipped_is_summarized_at_an_operators_request(operator, reader):
    conversation_id = a_conversation("hello").conversation_id
    CompactionRun.objects.create(
        run_id="run_0000000000000000", conversation_id=conversation_id, reason=Reason.THRESHOLD,
        outcome=Outcome.SKIPPED, started_at=timezone.now(), finished_at=timezone.now(),
        tokens_before=1, tokens_after=1,
    )  # fmt: skip

    done = operator.post("/w/default/backfill/", follow=True).content.decode()

    assert "1 compaction requested." in done
    assert CompactionJob.objects.get().conversation_id == conversation_id
    assert "Summarize them anyway" in page_of(operator, "/w/default/runs/")
    assert "Summarize them anyway" not in page_of(reader, "/w/default/runs/")

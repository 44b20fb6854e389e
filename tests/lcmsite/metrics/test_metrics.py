"""What `/metrics` tells, to whom, and what it must never tell."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import anyio
import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from compaction.engine import CompactionEngine
from compaction.history.session_history import SessionHistory
from compaction.models import CompactionJob, CompactionRun, ModelEndpoint
from conversations.models import Conversation
from conversations.scope import EVERYTHING, Scope
from integrity.checker import IntegrityChecker
from integrity.models import IntegrityReport
from integrity.policy import IntegrityPolicy
from integrity.scans import ScanWorker
from integrity.types import ScanMode
from lcmsite.access.keys import caller_of
from lcmsite.mcp.calls import CallRunner
from lcmsite.mcp.tool_list import TOOLS
from tests.factories import a_conversation, a_workspace
from tests.integrity.breaking import breaking
from tests.lcmsite.callers import Api, an_api_key
from tests.lcmsite.exposed import ANSWERED, Exposed
from tests.statements import counted_statements, execute


def exposed() -> Exposed:
    answer = Client().get("/metrics")
    assert answer.status_code == 200
    return Exposed(answer.content.decode())


@pytest.fixture
def compacted(db: None, settings: Any) -> Conversation:
    """Enough to need room."""
    texts = (f"Message {number} about the harbour and its boats. " * 30 for number in range(14))
    conversation_id = a_conversation(*texts).conversation_id
    settings.LCM = {"model_token_budget": 4000, "fresh_tail_count": 4}
    CompactionEngine.from_settings(Scope(a_workspace().pk)).compact(conversation_id=conversation_id)
    return Conversation.objects.get(pk=conversation_id)


SPECIFIED = {
    "lcm_context_tokens_total",
    "lcm_compaction_runs_total",
    "lcm_summaries_created_total",
    "lcm_expand_latency_ms",
    "lcm_search_latency_ms",
    "lcm_integrity_failures_total",
}


@pytest.mark.django_db
def test_the_six_of_the_specification_are_there_from_the_start():
    told = exposed()

    assert {name.removesuffix("_count") for name in told.samples} >= SPECIFIED
    assert {tuple(held) for held in told.samples["lcm_summaries_created_total"]} == {
        (("kind", "leaf"),),
        (("kind", "condensed"),),
    }


def test_gauges_say_what_the_database_says(compacted):
    told = exposed()

    assert told.of("lcm_database_up") == 1
    assert told.of("lcm_context_tokens_total") == compacted.active_tokens
    assert told.of("lcm_tokens_stored") == compacted.total_tokens
    assert told.of("lcm_messages") == told.of("lcm_messages", tier="hot") == compacted.next_seq - 1
    assert told.of("lcm_tokens_saved") > 0
    assert told.of("lcm_storage_bytes", tier="hot") > 0
    assert told.of("lcm_database_connections") >= 1


def test_jobs_are_counted_by_queue_and_state_and_the_oldest_due_one_is_told(compacted):
    wait = timezone.now() - timedelta(minutes=10)
    CompactionJob.objects.create(conversation=compacted, reason="manual", requested_at=wait, run_after=wait)
    CompactionJob.objects.create(conversation=compacted, reason="manual", state="failed", requested_at=wait)
    IntegrityChecker.from_settings(Scope(compacted.workspace_id)).request(conversation_id=compacted.pk)
    SessionHistory.from_settings().request_session(conversation_id=compacted.pk)

    told = exposed()

    assert told.by("lcm_jobs", "queue", "state") == {
        ("compaction", "queued"): 1,
        ("compaction", "failed"): 1,
        ("history", "queued"): 1,
        ("integrity", "queued"): 1,
    }
    assert told.of("lcm_job_oldest_seconds", queue="compaction") >= 600
    assert told.of("lcm_job_oldest_seconds", queue="integrity") < 600


def test_runs_of_the_last_hour_are_counted_by_outcome_and_their_summaries_by_level(compacted):
    now = timezone.now()
    CompactionRun.objects.bulk_create(
        CompactionRun(
            run_id=f"run_{number}", conversation=compacted, reason="manual", outcome="failed", started_at=started_at,
            tokens_before=0, tokens_after=0,
        )
        for number, started_at in enumerate((now - timedelta(minutes=59), now - timedelta(minutes=61)))
    )  # fmt: skip

    told = exposed()

    assert told.by("lcm_recent_runs", "outcome") == {("compacted",): 1, ("failed",): 1}
    assert told.by("lcm_recent_summaries", "level") == {("normal",): compacted.summaries.count()}


@pytest.mark.django_db
def test_a_job_that_is_to_wait_is_no_delay():
    conversation = Conversation.objects.get(pk=a_conversation("hello").conversation_id)
    CompactionJob.objects.create(
        conversation=conversation, reason="manual", run_after=timezone.now() + timedelta(minutes=5)
    )

    told = exposed()

    assert told.of("lcm_jobs", queue="compaction", state="queued") == 1
    assert told.of("lcm_job_oldest_seconds", queue="compaction") == 0


@pytest.mark.django_db
def test_models_are_told_with_their_breaker_and_what_they_have_cost():
    later = timezone.now() + timedelta(minutes=5)
    ModelEndpoint.objects.create(name="chat", calls=7, failures=5, tokens_in=100, tokens_out=20, open_until=later)

    told = exposed()

    assert told.by("lcm_model_breaker", "model", "state") == {("chat", "open"): 1}
    assert told.of("lcm_model_calls", model="chat") == 7
    assert told.by("lcm_model_tokens", "direction") == {("in",): 100, ("out",): 20}


def test_a_finding_of_the_whole_site_is_told_by_its_code(compacted):
    Conversation.objects.filter(pk=compacted.pk).update(total_tokens=0)
    IntegrityChecker.from_settings().run()

    told = exposed()

    assert told.by("lcm_integrity_findings", "code") == {("counters_are_recounts",): 1}
    assert told.of("lcm_conversations_with_findings") == 1
    assert told.of("lcm_integrity_report_age_seconds") < 3600


def test_a_finding_of_the_night_is_shown_until_a_check_of_its_conversation_is_clean(compacted, monkeypatch):
    monkeypatch.setattr("integrity.tasks.scan_conversations", lambda **_: None)
    Conversation.objects.filter(pk=compacted.pk).update(total_tokens=0)
    policy = replace(IntegrityPolicy(), scan_interval_minutes=0, full_scan_hour=3)
    worker = ScanWorker(policy, sleep=lambda seconds: None)
    replace(worker, now=lambda: timezone.now().replace(hour=3)).sweep()
    while worker.work():
        pass

    found = exposed()
    IntegrityChecker.from_settings().run(extent=ScanMode.INCREMENTAL)
    found_again = exposed()
    Conversation.objects.filter(pk=compacted.pk).update(total_tokens=compacted.total_tokens)
    IntegrityChecker.from_settings().run(conversation_id=compacted.pk)
    resolved = exposed()

    assert IntegrityReport.objects.filter(workspace=None, conversation=None, conversations_checked=0).exists()
    assert found.by("lcm_integrity_findings", "code") == {("counters_are_recounts",): 1}
    assert found_again.by("lcm_integrity_findings", "code") == {("counters_are_recounts",): 1}
    assert resolved.by("lcm_integrity_findings", "code") == {}
    assert [each.of("lcm_conversations_with_findings") for each in (found, found_again, resolved)] == [1, 1, 0]


def test_a_finding_outside_conversations_is_shown_once_until_the_next_report_of_its_scope(compacted):
    breaking("UPDATE workspaces SET name = 'renamed' WHERE workspace_id = %s", compacted.workspace_id)
    for scope in (EVERYTHING, Scope(compacted.workspace_id)):
        IntegrityChecker.from_settings(scope).run()

    assert exposed().by("lcm_integrity_findings", "code") == {("site_rows_match_their_seals",): 1}


def test_the_report_of_the_site_is_found_behind_any_number_of_reports_of_workspaces(compacted):
    for scope in (EVERYTHING, Scope(compacted.workspace_id)):
        IntegrityChecker.from_settings(scope).run()
    newest = IntegrityReport.objects.get(workspace=compacted.workspace_id)
    IntegrityReport.objects.bulk_create(
        IntegrityReport(
            report_id=f"report_{number}",
            workspace_id=newest.workspace_id,
            mode=newest.mode,
            started_at=newest.started_at,
            finished_at=newest.finished_at,
        )
        for number in range(1_000)
    )
    yesterday = timezone.now() - timedelta(days=1)
    IntegrityReport.objects.filter(workspace=None).update(finished_at=yesterday)

    assert 86_400 <= exposed().of("lcm_integrity_report_age_seconds") < 90_000


@pytest.mark.django_db
def test_a_site_that_was_never_checked_is_as_old_as_its_tables():
    execute("UPDATE django_migrations SET applied = applied - interval '2 days'")

    assert exposed().of("lcm_integrity_report_age_seconds") > 2 * 86_400


@pytest.mark.django_db
def test_requests_are_counted_by_operation_and_never_by_path():
    before = exposed().by(ANSWERED, "view", "method", "status")
    conversation = a_conversation("hello")
    api = Api(an_api_key())

    api.get(f"conversations/{conversation.conversation_id}/")
    api.get("conversations/987654321/")
    api.get("nothing/here/")
    Client().get("/api/v1/conversations/1/messages/")

    told = exposed().by(ANSWERED, "view", "method", "status")
    new = {key: value - before.get(key, 0) for key, value in told.items() if value != before.get(key, 0)}
    assert {key: value for key, value in new.items() if key[0] != "metrics"} == {
        ("show", "GET", "200"): 1,
        ("show", "GET", "404"): 1,
        ("nothing_here", "GET", "404"): 1,
        ("messages", "GET", "401"): 1,
    }


@pytest.mark.django_db
def test_no_label_holds_what_anybody_wrote_or_an_id(django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        conversation = a_conversation("The password is swordfish.", session_id="swordfish-session")
    api = Api(an_api_key())
    for path in ("matches/?query=swordfish", "messages/", "overviews/?query=swordfish"):
        api.get(f"conversations/{conversation.conversation_id}/{path}")
    Client().get("/swordfish/")
    Client().get("/w/swordfish/conversations/77/")

    values = exposed().label_values

    assert not [value for value in values if "swordfish" in value]
    assert not [value for value in values if value.isdigit() and not 100 <= int(value) < 600]


def test_a_scrape_costs_few_statements_however_much_there_is(compacted):
    exposed()
    with counted_statements() as statements:
        exposed()

    assert len(statements) <= 12


@pytest.mark.django_db
def test_without_a_database_the_counts_are_still_told(monkeypatch):
    def gone(*_: object, **__: object) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(connection, "cursor", gone)

    told = exposed()

    assert told.of("lcm_database_up") == 0
    assert "lcm_context_tokens_total" not in told.samples
    assert "lcm_search_latency_ms_count" in told.samples


@pytest.mark.django_db
def test_a_database_that_accepts_no_writes_is_not_up_and_the_gauges_are_there():
    execute("SET TRANSACTION READ ONLY")

    told = exposed()

    assert told.of("lcm_database_up") == 0
    assert "lcm_context_tokens_total" in told.samples


@pytest.mark.django_db
class TestWhoIsTold:
    def test_programs_on_this_machine_where_no_token_is_set(self):
        assert Client(REMOTE_ADDR="127.0.0.1").get("/metrics").status_code == 200
        assert Client(REMOTE_ADDR="::1").get("/metrics").status_code == 200

    def test_nobody_from_elsewhere_or_behind_a_proxy_and_nobody_who_wants_to_write(self):
        for where in (
            {"REMOTE_ADDR": "192.0.2.7"},
            {"REMOTE_ADDR": ""},
            {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "127.0.0.1"},
            {"REMOTE_ADDR": "127.0.0.1", "HTTP_FORWARDED": "for=192.0.2.7"},
        ):
            answer = Client(**where).get("/metrics")

            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), where
            assert "LCM_METRICS_TOKEN" in answer.json()["detail"]
        assert Client().post("/metrics").status_code == 405

    def test_with_a_token_whoever_has_it_from_anywhere(self, settings):
        settings.DEPLOYMENT = replace(settings.DEPLOYMENT, metrics_token="sesame")
        elsewhere = Client(REMOTE_ADDR="192.0.2.7")

        for header in ("Bearer sesame", "bearer sesame"):
            assert elsewhere.get("/metrics", headers={"Authorization": header}).status_code == 200
        for header in ("Bearer wrong", "Bearer", "Basic sesame", "Bearer sésame", ""):
            answer = elsewhere.get("/metrics", headers={"Authorization": header})
            assert answer.status_code == 401, header
            assert answer["WWW-Authenticate"].startswith("Bearer")


def test_calls_of_agents_are_counted_by_tool_and_by_how_they_ended(committed_db):
    conversation_id = a_conversation("hello").conversation_id
    caller = caller_of(an_api_key())
    before = exposed().by("lcm_mcp_calls_total", "tool", "outcome")

    for given in (
        {"conversation_id": conversation_id},
        {"conversation_id": 987654321},
        {"conversation_id": "nobody's"},
    ):
        anyio.run(partial(CallRunner().run_operation, TOOLS["lcm_status"], given, caller=lambda: caller))

    after = exposed().by("lcm_mcp_calls_total", "tool", "outcome")
    assert {key: count - before.get(key, 0) for key, count in after.items() if count != before.get(key, 0)} == {
        ("lcm_status", "answered"): 1,
        ("lcm_status", "not_found"): 2,
    }

"""Checks in the background: what they look at, where they go on, and what they leave."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest
from django.utils import timezone

from compaction.types import JobState
from conversations.errors import NotFound
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from integrity import models
from integrity.checker import IntegrityChecker
from integrity.invariants import Found, Invariant
from integrity.policy import IntegrityPolicy
from integrity.scans import ScanWorker
from integrity.types import Finding, IntegrityReport, ScanMode, ScanRecord, Severity
from lcmsite.connections import closing_connections
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.integrity.breaking import breaking
from tests.round_trip import assert_ledgers_survive
from tests.statements import execute
from tests.summaries import a_summary_of


@pytest.fixture(autouse=True)
def nobody_is_woken(monkeypatch):
    monkeypatch.setattr("integrity.tasks.scan_conversations", lambda **_: None)


@pytest.fixture
def conversation_ids(db: None) -> list[int]:
    return [a_conversation(*(f"message {n} of {each}" for n in range(5))).conversation_id for each in range(4)]


def a_worker(**policy: int) -> ScanWorker:
    return ScanWorker(policy=replace(IntegrityPolicy(), scan_pause_ms=0, **policy))


def request(mode: ScanMode = ScanMode.FULL, **options: object) -> ScanRecord:
    return IntegrityChecker.from_settings().request(extent=mode, **options)


def state_of(scan: ScanRecord) -> ScanRecord:
    return IntegrityChecker.from_settings().get_scan(scan_id=scan.scan_id)


def altered(conversation_id: int) -> None:
    breaking("UPDATE messages SET content = 'x' WHERE conversation_id = %s AND seq = 2", conversation_id)


def test_a_scan_leaves_a_report(conversation_ids):
    scan = request()

    assert a_worker().work(scan_id=scan.scan_id)

    done = state_of(scan)
    report = IntegrityChecker.from_settings().get_report(report_id=done.report_id).report
    assert done.state is JobState.DONE
    assert (report.is_clean, report.conversations_checked, report.messages_checked) == (True, 4, 20)
    assert not a_worker().work()


def test_a_wish_for_the_same_scan_is_the_same_scan(conversation_ids):
    first = request()

    assert request().scan_id == first.scan_id
    assert request(ScanMode.INCREMENTAL).scan_id != first.scan_id
    assert request(conversation_id=conversation_ids[0]).scan_id != first.scan_id


def test_an_incremental_scan_looks_at_what_has_changed_or_was_not_clean(conversation_ids):
    altered(conversation_ids[1])
    a_worker().work(scan_id=request().scan_id)
    say(conversation_ids[2], "more")

    first, second = (IntegrityChecker.from_settings().run(extent=ScanMode.INCREMENTAL) for _ in range(2))

    assert (first.conversations_checked, first.messages_checked) == (2, 5 + 6)
    assert (second.conversations_checked, second.messages_checked) == (1, 5)
    assert [finding.conversation_id for result in second.broken for finding in result.findings] == [conversation_ids[1]]


def test_a_scan_with_a_plan_leaves_one_where_something_is_found(conversation_ids):
    clean, broken = (request(conversation_id=each, with_plan=True) for each in conversation_ids[:2])
    altered(conversation_ids[1])

    for each in (clean, broken):
        a_worker().work(scan_id=each.scan_id)

    assert state_of(clean).repair_id is None
    plan = models.RepairPlan.objects.get(pk=state_of(broken).repair_id)
    assert [step.operation for step in plan.steps.all()] == ["quarantine"]


@pytest.mark.parametrize(("batch", "stops"), [(1, (1, 3, 3)), (2, (3, 3))])
def test_a_scan_stops_when_its_time_is_over_and_goes_on_from_there(conversation_ids, monkeypatch, batch, stops):
    monkeypatch.setattr("integrity.examination.BATCH_CONVERSATIONS", batch)
    scan = request()
    clock = iter(range(0, 10_000, 50))
    monkeypatch.setattr("integrity.scans.time.monotonic", lambda: next(clock))
    positions = []

    while state_of(scan).state is not JobState.DONE:
        assert a_worker(scan_seconds=60).work(scan_id=scan.scan_id)
        positions.append(models.IntegrityScan.objects.get(pk=scan.scan_id).position)

    report = IntegrityChecker.from_settings().get_report(report_id=state_of(scan).report_id).report
    assert positions == [conversation_ids[stop] for stop in stops]
    assert report.conversations_checked == 4


def test_a_scan_that_fails_after_a_batch_checks_the_batch_again(conversation_ids, monkeypatch):
    scan = request()

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("integrity.scans.note_checked", fails)
    with pytest.raises(RuntimeError):
        a_worker().work(scan_id=scan.scan_id)

    assert models.IntegrityScan.objects.get().position == 0


def test_a_scan_that_dies_at_its_end_counts_each_finding_once(conversation_ids, monkeypatch):
    one = Found(1, (Finding(None, "act_1", "It is broken."),))
    broken = Invariant("acts_are_chained", Severity.CRITICAL, "Broken.", lambda _: one, of_the_site=True)
    monkeypatch.setattr("integrity.scans.INVARIANTS", [broken])
    scan = request()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("integrity.scans.reports.finish", Mock(side_effect=KeyboardInterrupt))
        a_worker().work(scan_id=scan.scan_id)
    models.IntegrityScan.objects.update(leased_until=timezone.now())

    a_worker().work(scan_id=scan.scan_id)

    [report] = models.IntegrityReport.objects.all()
    assert (report.counts, report.findings.count()) == ({"acts_are_chained": 1}, 1)


def test_a_conversation_that_takes_too_long_is_named_and_the_others_are_looked_at(committed_db, monkeypatch):
    quick, slow, last = (a_conversation("hello").conversation_id for _ in range(3))

    def linger(conversation_ids: list[int]) -> Found:
        execute("SELECT pg_sleep(%s)", 30 if slow in conversation_ids else 0)
        return Found()

    lingering = Invariant("messages_are_complete", Severity.CRITICAL, "Takes its time.", linger)
    monkeypatch.setattr("integrity.scans.INVARIANTS", [lingering])
    scan = request()

    a_worker(scan_statement_seconds=1).work(scan_id=scan.scan_id)

    report = IntegrityChecker.from_settings().get_report(report_id=state_of(scan).report_id).report
    assert (report.unchecked, report.conversations_checked, report.is_clean) == ((slow,), 2, False)
    assert set(models.ConversationCheck.objects.values_list("conversation_id", flat=True)) == {quick, last}


def test_the_sweep_asks_for_scans_by_the_clock(conversation_ids):
    midnight = datetime.now(UTC).replace(hour=0, minute=30)
    at_night = replace(a_worker(scan_interval_minutes=60, full_scan_hour=0), now=lambda: midnight)

    a_worker(scan_interval_minutes=0, full_scan_hour=-1).sweep()
    assert not models.IntegrityScan.objects.exists()
    at_night.sweep()
    at_night.sweep()

    ours = a_workspace().pk
    asked = models.IntegrityScan.objects.order_by("scan_id").values_list("workspace_id", "mode")
    assert list(asked) == [(ours, "incremental"), (ours, "full"), (None, "incremental")]


def test_scans_go_on_after_the_clock_was_set_back(conversation_ids):
    a_worker(scan_interval_minutes=60, full_scan_hour=-1).sweep()
    models.IntegrityScan.objects.update(state="done", requested_at=datetime.now(UTC) + timedelta(days=400))

    a_worker(scan_interval_minutes=60, full_scan_hour=-1).sweep()

    assert models.IntegrityScan.objects.filter(state="queued").count() == 1


def test_at_night_each_workspace_is_told_of_its_own_and_what_belongs_to_none_is_looked_for(conversation_ids):
    a_conversation("theirs", workspace=a_workspace("another"))
    altered(conversation_ids[1])
    midnight = datetime.now(UTC).replace(hour=0, minute=30)
    at_night = replace(a_worker(scan_interval_minutes=0, full_scan_hour=0), now=lambda: midnight)
    at_night.sweep()

    while a_worker().work():
        pass

    told = {
        name: IntegrityChecker.from_settings(Scope(a_workspace(name).pk)).list_reports(extent=ScanMode.FULL)
        for name in ("default", "another")
    }
    [of_the_site] = models.IntegrityReport.objects.filter(workspace=None)
    assert [(each.conversations_checked, each.finding_count) for each in told["default"]] == [(4, 1)]
    assert [(each.conversations_checked, each.finding_count) for each in told["another"]] == [(1, 0)]
    assert "rows_belong_to_something" in of_the_site.counts
    assert (of_the_site.conversations_checked, of_the_site.is_clean) == (0, True)


def test_what_is_old_is_forgotten_but_for_what_led_to_a_repair(conversation_ids):
    checker = IntegrityChecker.from_settings()
    old, applied, new = (checker.run().report_id for _ in range(3))
    plan = checker.plan_repairs(report_id=applied)
    models.RepairPlan.objects.filter(pk=plan.repair_id).update(applied_at=timezone.now())
    long_ago = timezone.now() - timedelta(days=100)
    models.IntegrityReport.objects.exclude(pk=new).update(started_at=long_ago)
    scan = request()
    models.IntegrityScan.objects.update(state=JobState.DONE, finished_at=long_ago)

    a_worker(scan_interval_minutes=0).sweep()

    assert set(models.IntegrityReport.objects.values_list("pk", flat=True)) == {applied, new}
    assert old not in {applied, new}
    assert not models.IntegrityScan.objects.filter(pk=scan.scan_id).exists()


def test_findings_are_an_event_in_the_log_without_a_word_of_what_was_said(conversation_ids, caplog):
    altered(conversation_ids[1])

    IntegrityChecker.from_settings().run()

    told = "".join(record.getMessage() for record in caplog.records)
    assert "integrity_failed" in told and "contents_match_their_hashes" in told
    assert "message 1 of" not in told


def test_scans_and_reports_are_secrets_of_their_workspace(conversation_ids):
    scan, report_id = request(), IntegrityChecker.from_settings().run().report_id
    stranger = IntegrityChecker.from_settings(Scope(a_workspace("another").pk))

    for read in (
        lambda: stranger.get_scan(scan_id=scan.scan_id),
        lambda: stranger.get_report(report_id=report_id),
        lambda: stranger.list_reports(before_report=report_id),
    ):
        with pytest.raises(NotFound):
            read()


def test_findings_of_a_report_come_in_pages(conversation_ids):
    checker = IntegrityChecker.from_settings()
    breaking("UPDATE messages SET content = 'x' WHERE conversation_id = %s", conversation_ids[3])
    report_id = checker.run().report_id

    page = checker.get_report(report_id=report_id, code="contents_match_their_hashes", limit=3)
    rest = checker.get_report(report_id=report_id, code="contents_match_their_hashes", after_id=page.next_after_id)

    assert (len(page.findings), len(rest.findings), rest.next_after_id) == (3, 2, None)
    assert page.report.finding_count == 5
    assert not {finding.finding_id for finding in page.findings} & {finding.finding_id for finding in rest.findings}


def test_reports_are_listed_with_the_newest_first_or_those_of_one_extent_alone(conversation_ids):
    checker = IntegrityChecker.from_settings()
    full, incremental = checker.run().report_id, checker.run(extent=ScanMode.INCREMENTAL).report_id
    of_one = checker.run(conversation_id=conversation_ids[0]).report_id

    def listed(**given: object) -> list[str]:
        return [each.report_id for each in checker.list_reports(**given)]

    assert listed() == [of_one, incremental, full]
    assert listed(before_report=of_one) == [incremental, full]
    assert listed(extent=ScanMode.FULL) == [of_one, full]
    assert listed(extent=ScanMode.FULL, whole=True) == [full]
    assert listed(extent=ScanMode.INCREMENTAL) == [incremental]


@pytest.mark.thorough
def test_writers_at_work_cause_no_finding(committed_db):
    conversation_id = a_conversation(*(f"message {n}" for n in range(40))).conversation_id
    store = a_store()
    appended = itertools.count()
    # One for each report: summaries are made between the first report and the last.
    reported = threading.Semaphore(0)
    is_enough = threading.Event()

    def append() -> None:
        while not is_enough.is_set():
            turn = next(appended)
            store.append_messages(
                conversation_id=conversation_id, messages=[NewMessage(Role.USER, f"more {turn} {m}") for m in range(3)]
            )

    def compact() -> None:
        for first in range(1, 33, 4):
            a_summary_of(store, conversation_id, seqs=range(first, first + 4))
            reported.acquire()

    reports: list[IntegrityReport] = []
    with ThreadPoolExecutor(2) as pool:
        appending, compacting = (pool.submit(closing_connections, each) for each in (append, compact))
        # A writer that fails ends the wait; otherwise both writers go on until the checks have seen them at work.
        while not appending.done() and not (compacting.done() and len({each.messages_checked for each in reports}) > 3):
            reports.append(IntegrityChecker.from_settings().run(conversation_id=conversation_id))
            reported.release()
        is_enough.set()
        for each in (appending, compacting):
            each.result()

    assert [report.broken for report in reports if not report.is_clean] == []
    assert len({report.messages_checked for report in reports}) > 3
    last = IntegrityChecker.from_settings().run(conversation_id=conversation_id)
    assert (last.is_clean, last.messages_checked) == (True, 40 + 3 * next(appended))
    assert_ledgers_survive()

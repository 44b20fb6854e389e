"""A check while others write: it sees one moment of the database, and what it sees is whole."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from django.db.utils import InternalError

from conversations.models import Conversation
from conversations.sql import snapshot
from conversations.types import NewMessage, Role
from integrity.checker import IntegrityChecker
from integrity.invariants import Found, Invariant
from integrity.scans.scanning import ScanWorker
from integrity.types import IntegrityReport, Severity
from tests.factories import a_conversation, a_store
from tests.round_trip import assert_ledgers_survive
from tests.summaries import a_summary_of


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

    def closing(work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            connection.close()

    reports: list[IntegrityReport] = []
    with ThreadPoolExecutor(2) as pool:
        appending, compacting = (pool.submit(closing, each) for each in (append, compact))
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


def test_a_snapshot_sees_nothing_of_what_is_committed_meanwhile(committed_db):
    conversation_id = a_conversation("one").conversation_id

    def append() -> None:
        try:
            a_store().append_messages(conversation_id=conversation_id, messages=[NewMessage(Role.USER, "two")])
        finally:
            connection.close()

    with snapshot():
        before = Conversation.objects.get(pk=conversation_id).next_seq
        with ThreadPoolExecutor(1) as pool:
            pool.submit(append).result()
        meanwhile = Conversation.objects.get(pk=conversation_id).next_seq

    assert (before, meanwhile) == (2, 2)
    assert Conversation.objects.get(pk=conversation_id).next_seq == 3


def test_nothing_can_be_written_in_a_snapshot(committed_db):
    conversation_id = a_conversation("one").conversation_id

    with pytest.raises(InternalError, match="read-only"), snapshot():
        Conversation.objects.filter(pk=conversation_id).update(title="changed")


def test_a_snapshot_inside_a_transaction_sees_what_that_transaction_wrote(committed_db):
    with transaction.atomic():
        conversation_id = a_conversation("one").conversation_id
        with snapshot():
            assert Conversation.objects.filter(pk=conversation_id).exists()


def test_a_check_that_somebody_waits_for_has_the_servers_helpers_and_a_scan_leaves_them_to_others(
    committed_db, monkeypatch
):
    a_conversation("hello")
    costs = []

    def look(conversation_ids: list[int]) -> Found:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('parallel_tuple_cost')::float")
            costs.append(cursor.fetchone()[0])
        return Found()

    looking = Invariant("messages_are_complete", Severity.CRITICAL, "Looks.", look)
    monkeypatch.setattr("integrity.scans.scanning.INVARIANTS", [looking])

    IntegrityChecker(invariants=(looking,)).run()
    scan = IntegrityChecker().request()
    ScanWorker.from_settings().work(scan_id=scan.scan_id)

    assert costs[0] == 0
    assert costs[1] > 0

"""A check while others write: it sees one moment of the database, and what it sees is whole."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from conversations.types import NewMessage, Role
from integrity.checker import IntegrityChecker
from integrity.types import IntegrityReport
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

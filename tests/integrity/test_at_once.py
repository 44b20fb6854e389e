"""Archiving, erasing and quarantining beside other writers: no deadlock, and no text that stays by mistake."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial

import pytest
from django.db import transaction

from compaction.engine import CompactionEngine
from compaction.hosts.branching import Branches
from conversations.cold_storage import archiving
from conversations.errors import Conflict
from conversations.files.large_files import LargeFileService
from conversations.models import Summary
from conversations.scope import EVERYTHING
from conversations.sql import rows
from integrity.repairs.quarantines import Quarantines
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from retrieval.map.item_queue import claim_of_run
from retrieval.map.run_output import finish_if_over
from retrieval.semantic.models import Embedder
from tests.compacting import a_talk
from tests.conversations.appending import at_once, message_ids
from tests.factories import a_conversation
from tests.flows.processes import wait_until
from tests.integrity.breaking import checked
from tests.maps import a_map_run


def until_another_waits_for_a_lock() -> None:
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

    def is_waiting() -> bool:
        # Within a transaction, PostgreSQL reads the activity once.
        rows("SELECT pg_stat_clear_snapshot()")
        return bool(rows(waiting))

    wait_until(is_waiting, seconds=20, what="another transaction waits for a lock")


@pytest.mark.parametrize("other", ["move_head", "quarantine"])
@pytest.mark.parametrize("move", ["archive", "thaw"])
def test_a_move_to_another_tier_waits_for_other_writers_of_the_conversation(committed_db, monkeypatch, move, other):
    # With an embedder, a trigger locks the messages that move.
    Embedder.objects.create(url="http://host/v1", model="small", question_model="small", dimension=3)
    conversation_id = a_conversation(*(f"text {n}" for n in range(1, 7))).conversation_id
    branches, retention = Branches.from_settings(), Retention.from_settings()
    branches.move_head(conversation_id=conversation_id, head_seq=2)
    if move == "thaw":
        retention.archive(conversation_id=conversation_id)
    first, require_same, has_moved = message_ids(conversation_id)[0], archiving._require_same, threading.Event()

    def compared_slowly(before):
        require_same(before)
        has_moved.set()
        until_another_waits_for_a_lock()

    def work(worker: int) -> None:
        if worker == 0:
            getattr(retention, move)(conversation_id=conversation_id)
            return
        has_moved.wait(20)
        if other == "move_head":
            branches.move_head(conversation_id=conversation_id, head_seq=6)
        else:
            Quarantines(EVERYTHING).quarantine(id=f"msg_{first}", reason="damaged")

    monkeypatch.setattr(archiving, "_require_same", compared_slowly)
    at_once(work, workers=2)

    assert checked() == {}


def test_an_erasure_and_the_end_of_a_map_run_over_its_file_wait_for_each_other(committed_db, monkeypatch):
    run = a_map_run()
    for lease in claim_of_run(run_id=run.pk, worker="test", count=8, lease_seconds=30):
        lease.complete('{"label":"herring"}', actor="test")
    erasures, describe, is_ending = Erasures.from_settings(), LargeFileService.describe, threading.Event()
    preview = erasures.preview_erasure(conversation_id=run.conversation_id, file_ids=[run.input_file_id])

    def described_slowly(self, file):
        is_ending.set()
        until_another_waits_for_a_lock()
        return describe(self, file)

    def work(worker: int) -> str:
        if worker == 0:
            finish_if_over(run.pk, actor="test")
            return ""
        is_ending.wait(20)
        with suppress(Conflict):
            erasures.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)
            return ""
        return "outdated"

    monkeypatch.setattr(LargeFileService, "describe", described_slowly)

    # The erasure finds the output, which its preview does not list.
    assert at_once(work, workers=2) == ["", "outdated"]
    run.refresh_from_db()
    assert run.state == "completed" and checked() == {}


@pytest.mark.parametrize("act", ["quarantine", "release"])
def test_a_compaction_that_begins_beside_a_quarantine_or_a_release_heeds_it(committed_db, act):
    conversation_id = a_talk(20, overrides={"fresh_tail_count": 2}).conversation_id
    first, quarantines = message_ids(conversation_id)[0], Quarantines(EVERYTHING)
    change = partial(quarantines.quarantine, id=f"msg_{first}", reason="damaged")
    if act == "release":
        change = partial(quarantines.release, quarantine_id=change().quarantine_id)
    is_changed = threading.Event()

    def work(worker: int) -> None:
        if worker == 0:
            with transaction.atomic():
                change()
                is_changed.set()
                until_another_waits_for_a_lock()
            return
        is_changed.wait(20)
        CompactionEngine.from_settings().compact(conversation_id=conversation_id)

    at_once(work, workers=2)

    text = Summary.objects.earliest("first_seq").content
    assert ("port 5000" in text) is (act == "release")

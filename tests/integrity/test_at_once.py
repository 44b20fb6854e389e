"""Archiving, erasing and quarantining beside other writers: no deadlock, and no text that stays by mistake."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from compaction.engine import CompactionEngine
from compaction.history import session_history
from compaction.history.session_history import SessionHistory
from compaction.hosts.branching import Branches
from conversations.audit import AuditLog
from conversations.cold_storage import archiving
from conversations.errors import Conflict
from conversations.files.large_files import LargeFileService
from conversations.models import Conversation, LargeFile, Summary
from conversations.scope import EVERYTHING
from integrity.repairs.quarantines import Quarantines
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from retrieval.map.item_queue import claim_of_run
from retrieval.map.run_output import finish_if_over
from retrieval.semantic.models import Embedder
from tests.compacting import a_talk
from tests.conversations.appending import a_lock_is_awaited, at_once, message_ids
from tests.factories import a_conversation
from tests.flows.processes import wait_until
from tests.histories import SIZES, a_session, current, work_off
from tests.integrity.breaking import checked
from tests.integrity.erasing import erased
from tests.maps import a_map_run


@pytest.fixture
def beside(committed_db, monkeypatch) -> Callable[..., None]:
    """Do two things at once: the first stops where it calls `name`, until the second waits for a lock."""

    def do(first: Callable[[], object], second: Callable[[], object], *, of: Any, name: str) -> None:
        called, is_there = getattr(of, name), threading.Event()

        def stop(*given: Any, **named: Any) -> Any:
            is_there.set()
            wait_until(a_lock_is_awaited, seconds=20, what="the second waits for a lock")
            return called(*given, **named)

        with monkeypatch.context() as patched:
            patched.setattr(of, name, stop)
            at_once(lambda worker: second() if worker and is_there.wait(20) else first(), workers=2)

    return do


@pytest.mark.parametrize("other", ["move_head", "quarantine"])
@pytest.mark.parametrize("move", ["archive", "thaw"])
def test_a_move_to_another_tier_holds_up_other_writers_of_the_conversation(beside, move, other):
    # With an embedder, a trigger locks the messages that move.
    Embedder.objects.create(url="http://host/v1", model="small", question_model="small", dimension=3)
    number = a_conversation("a", "b", "c").conversation_id
    branches, retention = Branches.from_settings(), Retention.from_settings()
    branches.move_head(conversation_id=number, head_seq=1)
    if move == "thaw":
        retention.archive(conversation_id=number)
    others = {
        "move_head": lambda: branches.move_head(conversation_id=number, head_seq=3),
        "quarantine": lambda: Quarantines(EVERYTHING).quarantine(id=f"msg_{message_ids(number)[0]}", reason="damaged"),
    }

    beside(lambda: getattr(retention, move)(conversation_id=number), others[other], of=archiving, name="_require_same")

    assert checked() == {}


def test_a_file_that_is_stored_beside_an_erasure_of_the_same_bytes_keeps_them(beside):
    files, erasures = LargeFileService.from_settings(), Erasures.from_settings()
    first, second = (Conversation.objects.get(pk=a_conversation().conversation_id) for _ in range(2))
    one = files.store(conversation_id=first.pk, content=b"shared").file_id
    kept = files.keep(second, b"shared")

    beside(lambda: files.describe(kept), lambda: erased(erasures, first.pk, file_ids=[one]), of=LargeFile, name="save")

    assert files.read(file_id=kept.file_id) == b"shared" and checked() == {}


def test_an_erasure_waits_for_the_end_of_a_map_run_over_its_file(beside):
    run, erasures = a_map_run(), Erasures.from_settings()
    for lease in claim_of_run(run_id=run.pk, worker="test", count=8, lease_seconds=30):
        lease.complete('{"label":"herring"}', actor="test")
    preview = erasures.preview_erasure(conversation_id=run.conversation_id, file_ids=[run.input_file_id])

    def erase() -> None:
        # It finds the output, which the preview does not list.
        with pytest.raises(Conflict, match="Preview again"):
            erasures.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)

    beside(lambda: finish_if_over(run.pk, actor="test"), erase, of=LargeFileService, name="describe")

    run.refresh_from_db()
    assert run.state == "completed" and checked() == {}


def test_an_arc_that_is_written_beside_an_erasure_keeps_nothing_of_what_is_erased(beside, settings):
    settings.LCM = SIZES
    numbers = [a_session(number).conversation_id for number in range(2)]
    for number in numbers:
        SessionHistory.from_settings().summarize_session(conversation_id=number)

    beside(work_off, lambda: erased(Erasures.from_settings(), numbers[0]), of=session_history, name="write")

    assert [each.content for each in current(1)] == [""]


@pytest.mark.parametrize("act", ["quarantine", "release"])
def test_a_compaction_that_begins_beside_a_quarantine_or_a_release_heeds_it(beside, act):
    number = a_talk(20, overrides={"fresh_tail_count": 2}).conversation_id
    compact, quarantines = CompactionEngine.from_settings().compact, Quarantines(EVERYTHING)
    given = {"id": f"msg_{message_ids(number)[0]}", "reason": "damaged"}
    if act == "release":
        given = {"quarantine_id": quarantines.quarantine(**given).quarantine_id}

    beside(
        lambda: getattr(quarantines, act)(**given), lambda: compact(conversation_id=number), of=AuditLog, name="record"
    )

    assert ("port 5000" in Summary.objects.earliest("first_seq").content) is (act == "release")


def test_of_several_who_withhold_a_thing_at_once_one_does_and_the_others_learn_of_it(committed_db):
    [number] = message_ids(a_conversation("hello").conversation_id)

    def withhold(_: int) -> str:
        try:
            return Quarantines().quarantine(id=f"msg_{number}", reason="why").target
        except Conflict as refusal:
            return refusal.code

    assert sorted(at_once(withhold, workers=4)) == [f"msg_{number}", *["quarantined"] * 3]

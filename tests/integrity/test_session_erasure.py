"""An erasure takes the texts of sessions, arcs and epochs that rest on what is erased; the rest is summarized again."""

from __future__ import annotations

import pytest

from compaction.background.worker import CompactionWorker
from compaction.engine import CompactionEngine
from compaction.history.history_worker import HistoryWorker
from compaction.history.models import SessionSummary
from compaction.history.session_history import SessionHistory
from integrity.retention.erasure import Erasures
from tests.factories import a_conversation
from tests.histories import a_session, current, go_on, members, summarize, work_off
from tests.integrity.breaking import checked
from tests.integrity.erasing import erased

pytestmark = pytest.mark.django_db

SECRET = "The password of the lighthouse is Herring-4711."


def all_texts() -> str:
    return "".join(SessionSummary.objects.values_list("content", flat=True))


@pytest.mark.parametrize("is_compacted", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_what_rests_on_an_erased_message_loses_its_text_up_to_the_epoch_and_is_made_again(settings, is_compacted):
    settings.LCM = {"sessions_per_arc": 2, "arcs_per_epoch": 2, "leaf_chunk_tokens": 300, "leaf_target_tokens": 100}
    confided = a_conversation(SECRET, *[f"Boat {n} came in at noon." for n in range(30)], project="harbour")
    if is_compacted:
        CompactionEngine.from_settings().compact(conversation_id=confided.conversation_id)
    summarize([confided, *(a_session(number) for number in range(3))])
    assert "Herring-4711" in all_texts()
    hashes = dict(SessionSummary.objects.values_list("pk", "summary_hash"))

    preview, _ = erased(Erasures.from_settings(), confided.conversation_id, from_seq=1, to_seq=1)

    assert [(each.what, each.count, each.is_erased) for each in preview.texts_elsewhere if "epoch" in each.what] == [
        ("session, arc or epoch summary", 3, True)
    ]
    assert "Herring" not in all_texts()
    tombstones = SessionSummary.objects.filter(erased_by__isnull=False)
    assert sorted(each.kind for each in tombstones) == ["arc", "epoch", "session"]
    assert {pk: bytes(each) for pk, each in SessionSummary.objects.values_list("pk", "summary_hash")} == {
        pk: bytes(each) for pk, each in hashes.items()
    }
    assert checked() == {}

    while CompactionWorker.from_settings().work():
        pass
    HistoryWorker.from_settings().sweep()
    work_off()

    assert all(each.content and each.erased_by is None for depth in (0, 1, 2) for each in current(depth))
    assert "Herring" not in all_texts()
    assert checked() == {}


def test_a_session_that_is_erased_as_a_whole_stays_an_empty_member_of_its_arc(settings):
    settings.LCM = {"sessions_per_arc": 2}
    confided = a_conversation(SECRET, *[f"Boat {n} came in at noon." for n in range(30)], project="harbour")
    summarize([confided, a_session(1)])

    erased(Erasures.from_settings(), confided.conversation_id)
    HistoryWorker.from_settings().sweep()
    work_off()

    [arc] = current(1)
    assert arc.content
    assert arc.supersedes is not None
    assert {each.erased_by is None for each in members(arc)} == {True, False}
    assert "Herring" not in all_texts()
    HistoryWorker.from_settings().sweep()
    assert not HistoryWorker.from_settings().work()


def test_an_arc_of_which_nothing_is_left_is_not_made_again_for_ever(settings):
    settings.LCM = {"sessions_per_arc": 2}
    sessions = [a_session(number) for number in range(2)]
    summarize(sessions)
    go_on(sessions[0])
    SessionHistory.from_settings().summarize_session(conversation_id=sessions[0].conversation_id)
    for session in sessions:
        erased(Erasures.from_settings(), session.conversation_id)
    work_off()

    HistoryWorker.from_settings().sweep()

    assert not HistoryWorker.from_settings().work()
    assert [each.content for depth in (0, 1) for each in current(depth)] == ["", "", ""]

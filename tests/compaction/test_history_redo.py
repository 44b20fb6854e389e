"""A person has sessions, arcs and epochs made again, with what lies below them and above."""

from __future__ import annotations

import pytest
from django.test import override_settings

from compaction.history.models import SessionSummary
from compaction.history.session_history import SessionHistory
from compaction.types import JobState
from conversations.models import Message
from conversations.scope import Scope
from integrity.repairs.quarantines import Quarantines
from tests.compaction.test_session_history import SMALL
from tests.histories import a_session, current, go_on, members, summarize, work_off
from tests.integrity.breaking import checked, damaging

HASHES = "session_summaries_match_their_hashes"


@pytest.fixture(scope="module")
def made_past(module_rows):
    with override_settings(LCM=SMALL):
        summarize(a_session(number) for number in range(4))
        yield


@pytest.fixture
def past(made_past, db, settings) -> list[SessionSummary]:
    """Four sessions in two arcs, and these in an epoch, from the bottom up."""
    settings.LCM = SMALL
    return [each for depth in (0, 1, 2) for each in current(depth)]


def redo(summary: SessionSummary, **scope: Scope):
    return SessionHistory.from_settings(**scope).redo_session(summary_id=summary.pk)


def damage(*summaries: SessionSummary) -> None:
    for each in summaries:
        damaging(f"UPDATE session_summaries SET content = 'altered' WHERE summary_id = '{each.pk}'")


@pytest.mark.parametrize("place", [0, 4, 6], ids=["session", "arc", "epoch"])
def test_a_damaged_one_is_made_again_and_what_is_above_is_renewed(past, place):
    damage(past[place])

    redone = redo(past[place])
    work_off()

    assert (redone.created, redone.below, redone.summary.supersedes_id) == (True, 0, past[place].pk)
    assert "altered" not in redone.summary.content
    assert SessionSummary.objects.filter(supersedes__isnull=False).count() == {0: 3, 4: 2, 6: 1}[place]
    [epoch] = current(2)
    assert [each.pk for each in members(epoch)] == [each.pk for each in current(1)]
    # The old row is kept as the evidence that it is.
    assert checked() == {HASHES: [past[place].pk]}
    assert not redo(past[place]).created


def test_what_is_damaged_below_comes_first(past):
    damage(past[2], past[4], past[6])

    redone = redo(past[6])

    # The session, the arc that rests on it, and the other one.
    assert (redone.created, redone.below) == (True, 3)
    assert redone.summary.content == current(2)[0].content
    assert not [each.pk for depth in (0, 1, 2) for each in current(depth) if "altered" in each.content]
    assert set(checked()) == {HASHES}


def test_a_lost_link_of_a_session_is_in_the_new_one(past):
    damaging(f"DELETE FROM session_summary_memories WHERE summary_id = '{past[0].pk}' AND ordinal = 1")
    assert "sessions_reach_every_message" in checked()

    redo(past[0])
    work_off()

    assert "sessions_reach_every_message" not in checked()


def test_one_that_is_whole_stays_and_of_a_superseded_one_the_current_one_counts(past):
    whole = redo(past[6])
    assert (whole.created, whole.summary.summary_id) == (False, past[6].pk)
    assert SessionSummary.objects.count() == len(past)

    go_on(past[0].conversation)
    summarize([past[0].conversation])
    assert redo(past[0]).summary.summary_id == current(0)[0].pk


def test_in_the_background_workers_make_what_is_below_and_then_the_rest(past):
    damage(past[1], past[6])

    job = SessionHistory.from_settings().request_redo_session(summary_id=past[6].pk)
    assert (job.project, job.conversation_id, job.state) == ("harbour", None, JobState.QUEUED)
    listed = SessionHistory.from_settings().list_jobs(project="harbour", state="queued")
    assert {each.conversation_id for each in listed} == {None, past[1].conversation_id}
    work_off()

    assert not [each.pk for depth in (0, 1, 2) for each in current(depth) if "altered" in each.content]
    assert not SessionHistory.from_settings().list_jobs(state="queued")


def test_what_was_quarantined_since_is_not_in_an_arc_that_a_person_has_made_again(past):
    go_on(past[0].conversation, "The key is zanzibar-7751.")
    summarize([past[0].conversation])
    [arc, _] = current(1)
    Quarantines.from_settings().quarantine(id=f"msg_{Message.objects.latest('pk').pk}", reason="no")

    redone = redo(arc)

    assert "zanzibar" in arc.content
    assert (redone.created, redone.below) == (True, 1) and "zanzibar" not in redone.summary.content

"""Damaged session, arc and epoch summaries are repaired by a plan: made again, and renewed up to the epoch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import override_settings

from compaction.history.models import HistoryJob, SessionSummary
from compaction.history.session_history import SessionHistory
from compaction.types import JobState
from integrity.repairs.applying import Repairs
from integrity.types import PlanState
from tests.compaction.test_session_history import SMALL
from tests.histories import a_session, current, summarize, work_off
from tests.integrity.breaking import checked, damaging, forging
from tests.integrity.repairing import ADMIN, a_plan, applied

pytestmark = pytest.mark.django_db

HASHES = "session_summaries_match_their_hashes"
OF = "WHERE summary_id = '{id}'"


@pytest.fixture(scope="module")
def past(module_rows: None) -> Iterator[list[SessionSummary]]:
    """Four sessions in two arcs, and these in an epoch, from the bottom up; each test damages them for itself."""
    with override_settings(LCM=SMALL):
        summarize(a_session(number) for number in range(4))
        yield [each for depth in (0, 1, 2) for each in current(depth)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("place", "statement"),
    [
        (0, f"UPDATE session_summaries SET content = 'altered' {OF}"),
        (4, f"UPDATE session_summaries SET content = 'altered' {OF}"),
        (6, f"UPDATE session_summaries SET content = 'altered' {OF}"),
        (0, f"UPDATE session_summaries SET content = '' {OF}"),
        (0, f"UPDATE session_summaries SET last_seq = 5 {OF}"),
        (0, f"DELETE FROM session_summary_memories {OF} AND ordinal = 1"),
        (4, "DELETE FROM session_summary_children WHERE parent_id = '{id}' AND ordinal = 1"),
    ],
    ids=["a session", "an arc", "an epoch", "no text", "a range", "a lost link", "a lost member"],
)
def test_a_plan_makes_it_again_and_apply_supersedes_it(past, place, statement):
    id = past[place].pk
    damaging(statement.format(id=id))

    plan = a_plan()
    [step] = [step for step in plan.steps if step.target == id]
    assert (step.operation, step.reversible) == ("redo_history", True)
    outcome = applied(plan)
    work_off()

    assert outcome.state is PlanState.APPLIED
    again = SessionSummary.objects.get(supersedes=id)
    assert "altered" not in again.content and again.content
    assert {each for ids in checked().values() for each in ids if each.startswith("ses_")} == {id}
    # What cannot be put right is said so.
    over = a_plan()
    assert not over.steps
    assert any("made again since" in each.why for each in over.unplanned)


def test_an_applied_step_is_undone_until_a_worker_has_begun(past):
    damaging(f"UPDATE session_summaries SET content = 'altered' {OF.format(id=past[0].pk)}")
    plan = applied(a_plan())
    assert HistoryJob.objects.filter(state=JobState.QUEUED).count() == 1

    assert Repairs(ADMIN).undo_plan(repair_id=plan.repair_id).state is PlanState.UNDONE
    assert not HistoryJob.objects.filter(state=JobState.QUEUED).exists()
    assert not work_off() and SessionSummary.objects.count() == len(past)


def test_exchanged_members_are_left_to_a_person(past):
    arc, epoch = past[4].pk, past[6].pk
    damaging(f"UPDATE session_summary_children SET child_id = '{epoch}' WHERE parent_id = '{arc}' AND ordinal = 1")

    plan = a_plan()

    assert arc not in {step.target for step in plan.steps}
    assert any(each.id == arc and "exchanged" in each.why for each in plan.unplanned)


def test_a_job_that_no_worker_took_over_is_found_and_closed(past):
    conversation_id = past[0].conversation_id
    job = SessionHistory.from_settings().request_session(conversation_id=conversation_id)
    assert checked() == {}
    long_ago = "2020-01-01T00:00Z"
    HistoryJob.objects.filter(pk=job.job_id).update(state="leased", run_after=long_ago, leased_until=long_ago)

    assert checked() == {"history_work_comes_to_an_end": [f"history_job_{job.job_id}"]}
    plan = applied(a_plan())

    assert plan.state is PlanState.APPLIED
    assert HistoryJob.objects.get(pk=job.job_id).state == JobState.FAILED
    assert checked() == {}
    Repairs(ADMIN).undo_plan(repair_id=plan.repair_id)
    assert HistoryJob.objects.get(pk=job.job_id).state == JobState.LEASED


def test_a_wrong_count_is_left_as_the_row_never_changes(past):
    forging("session_summaries", f"UPDATE session_summaries SET token_count = 1 {OF.format(id=past[0].pk)}")

    [left] = a_plan().unplanned

    assert (left.code, left.id) == ("history_tokens_are_recounts", past[0].pk)

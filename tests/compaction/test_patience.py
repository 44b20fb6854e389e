from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from compaction.redo import LONGEST_PAUSE, MOST_ATTEMPTS, PAUSE, details_of, is_rested
from compaction.summarizing.escalation import Lack

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)


def noted(*lacks: Lack, waiting: str = "sum_1") -> dict[str, object]:
    """What the last of so many attempts notes."""
    details: dict[str, object] = {}
    for lack in lacks:
        details = details_of(waiting, lack, before=details, started_at=BEGAN)
    return details


def pause_after(details: dict[str, object]) -> timedelta:
    return datetime.fromisoformat(str(details["next_attempt_at"])) - BEGAN


def test_each_pause_is_twice_the_one_before_up_to_a_day():
    pauses = [pause_after(noted(*[Lack.UNANSWERED] * attempts)) for attempts in range(1, MOST_ATTEMPTS)]

    assert pauses[:3] == [PAUSE, 2 * PAUSE, 4 * PAUSE]
    assert max(pauses) <= LONGEST_PAUSE


def test_it_is_time_again_when_the_pause_is_over():
    details = noted(Lack.UNANSWERED)

    assert not is_rested(details, now=BEGAN + PAUSE - timedelta(seconds=1))
    assert is_rested(details, now=BEGAN + PAUSE)


def test_after_so_many_attempts_it_is_never_time_again():
    details = noted(*[Lack.UNANSWERED] * MOST_ATTEMPTS)

    assert details["next_attempt_at"] is None
    assert not is_rested(details, now=BEGAN + timedelta(days=10_000))


def test_that_nobody_was_there_is_not_held_against_a_summary():
    details = noted(*[Lack.UNAVAILABLE] * 50)

    assert details["attempts_without_an_answer"] == 0
    assert is_rested(details, now=BEGAN)


def test_nor_does_it_make_forgotten_what_was_tried_before():
    details = noted(Lack.UNANSWERED, Lack.UNANSWERED, Lack.UNAVAILABLE, Lack.UNANSWERED)

    assert pause_after(details) == 4 * PAUSE


@pytest.mark.parametrize("before", [{}, {"plan_id": "plan_1"}, noted(Lack.UNANSWERED, waiting="sum_0")])
def test_another_summary_begins_anew(before):
    details = details_of("sum_1", Lack.UNANSWERED, before=before, started_at=BEGAN)

    assert details["attempts_without_an_answer"] == 1


def test_a_run_that_left_nothing_waiting_lets_the_next_begin_at_once():
    assert is_rested({}, now=BEGAN)

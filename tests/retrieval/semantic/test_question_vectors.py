"""What all passages have in common decides less of what is nearest to a question than what is its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from retrieval.search.question_vectors import COMMON, SAMPLE, distinctive, every_nth

SUBJECT, DETAIL = (1.0, 0.0), (0.6, 0.8)


def likeness(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_a_passage_with_the_detail_comes_before_one_with_the_subject_alone():
    question = (0.9, 0.43)
    asked = distinctive(question, mean=SUBJECT)

    assert likeness(question, SUBJECT) > likeness(question, DETAIL)
    assert likeness(asked, DETAIL) > likeness(asked, SUBJECT)


def test_a_question_about_the_subject_alone_still_finds_it():
    asked = distinctive(SUBJECT, mean=SUBJECT)

    assert asked == pytest.approx([1 - COMMON, 0.0])
    assert likeness(asked, SUBJECT) > likeness(asked, DETAIL)


def test_the_length_of_a_models_vectors_does_not_matter():
    question = (0.9, 0.43)

    assert distinctive([5 * each for each in question], mean=SUBJECT) == pytest.approx(
        [5 * each for each in distinctive(question, mean=SUBJECT)]
    )


@pytest.mark.parametrize("passages", [0, 1, SAMPLE, 999, 5_000, 20_000])
def test_the_sample_has_messages_of_both_who_take_turns(passages):
    nth = every_nth(passages)

    assert nth % 2 == 1
    assert passages / nth <= 2 * SAMPLE

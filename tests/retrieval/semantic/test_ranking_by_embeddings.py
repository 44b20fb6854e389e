"""The nearest messages come first, and a short one of a person before a page about as near."""

from __future__ import annotations

import pytest

from retrieval.search.relevance.ranking import place_of
from retrieval.search.semantic_search import NearMessage, rank_near


def near(message_id: int, distance: float, *, role: str, tokens: int) -> NearMessage:
    place = place_of(1, message_id)
    return NearMessage(message_id, 0, 100, distance, message_id, place, role, tokens)


def test_a_persons_short_message_comes_before_a_page_that_is_a_little_nearer():
    pages = [near(each, each / 10, role="assistant", tokens=900) for each in range(1, 10)]
    lines = [near(10 + each, each / 10 + 0.01, role="user", tokens=40) for each in range(1, 10)]

    ranked = rank_near(sorted([*pages, *lines], key=lambda each: each.distance))

    assert [each.message_id for each in ranked][:2] == [11, 12]


def test_a_page_that_is_much_nearer_comes_first():
    page = near(1, 0.05, role="assistant", tokens=900)
    lines = [near(each, 0.5 + each / 1000, role="user", tokens=40) for each in range(2, 5)]
    pages = [near(each, 0.6 + each / 1000, role="assistant", tokens=900) for each in range(5, 8)]

    assert rank_near([page, *lines, *pages])[0].message_id == 1


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_between_speakers_who_write_alike_only_distances_decide(scale):
    roles = ["user", "assistant"] * 4
    given = [near(each, scale * each / 10, role=role, tokens=50) for each, role in enumerate(roles, start=1)]

    ranked = rank_near(given)

    assert [each.message_id for each in ranked] == [each.message_id for each in given]
    assert all(each.worth > 0 for each in ranked)


def test_one_message_alone_and_none_are_ranked():
    assert rank_near([]) == []
    assert [each.message_id for each in rank_near([near(1, 0.2, role="user", tokens=5)])] == [1]

"""One order is made of two: what both find comes first, and of short messages words decide."""

from __future__ import annotations

import pytest

from retrieval.search.rank_fusion import LONG_WEIGHT, SHORT_WEIGHT, fused, weight_of_meaning


def test_what_both_orders_have_comes_before_what_one_of_them_has():
    order = fused([1, 2, 3], [9, 2, 8], weight=1.0)

    assert list(order)[:3] == [2, 1, 9]
    assert order.keys() == {1, 2, 3, 8, 9}
    assert all(0 < worth < 1 for worth in order.values())


def test_the_best_of_both_has_a_worth_of_one():
    best = next(iter(fused([1, 2], [1, 3], weight=0.3).items()))

    assert best == (1, pytest.approx(1.0))


def test_the_less_meaning_counts_the_more_words_decide():
    assert list(fused([1, 2], [3, 4], weight=0.3)) == [1, 2, 3, 4]


def test_meaning_counts_little_where_messages_are_short_and_as_much_as_words_where_they_are_long():
    assert weight_of_meaning([]) == weight_of_meaning([10, 40, 20]) == SHORT_WEIGHT
    assert weight_of_meaning([300, 900]) == LONG_WEIGHT
    assert SHORT_WEIGHT < weight_of_meaning([50, 200]) < LONG_WEIGHT

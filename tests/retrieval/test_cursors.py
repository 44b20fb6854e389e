"""A cursor stands for one place in one expansion, and nobody else can write one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.errors import Invalid
from retrieval.expansion.expand import Position, Request
from retrieval.expansion.outline import Key

REQUEST = Request("sum_0123456789abcdef", 2, True)
POSITION = Position(Key(17, -1, "sum_a"), 4000, 12)


def test_a_cursor_is_read_back_as_it_was_written():
    assert REQUEST.position(REQUEST.cursor(POSITION)) == POSITION


@pytest.mark.parametrize(
    "other",
    [
        Request("sum_fedcba9876543210", 2, True),
        Request(REQUEST.of, 3, True),
        Request(REQUEST.of, 2, False),
    ],
)
def test_a_cursor_of_another_expansion_is_refused(other):
    with pytest.raises(Invalid) as refusal:
        REQUEST.position(other.cursor(POSITION))

    assert refusal.value.code == "bad_cursor"


@given(st.integers(0, 10_000), st.characters(codec="ascii"))
def test_a_changed_cursor_is_refused(place, character):
    cursor = REQUEST.cursor(POSITION)
    place %= len(cursor)
    changed = cursor[:place] + character + cursor[place + 1 :]

    if changed != cursor:
        with pytest.raises(Invalid) as refusal:
            REQUEST.position(changed)
        assert refusal.value.code == "bad_cursor"


@given(st.text(max_size=200))
def test_a_text_that_is_no_cursor_is_refused(text):
    with pytest.raises(Invalid) as refusal:
        REQUEST.position(text)

    assert refusal.value.code == "bad_cursor"


def test_keys_put_the_widest_summary_first_and_its_message_last():
    outer, inner, message = Key(5, -2, "sum_b"), Key(5, 0, "sum_a"), Key(5, 1)

    assert sorted([message, inner, outer, Key(4, 1)]) == [Key(4, 1), outer, inner, message]

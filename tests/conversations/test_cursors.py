"""Cursors are short, come back as they were written, and lead nowhere else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.errors import Invalid
from conversations.store.cursors import read_cursor, unsigned_values, write_cursor

MOMENT = datetime(2031, 5, 4, 3, 2, 1, 987654, tzinfo=UTC)
VALUES = st.one_of(
    st.none(),
    st.integers(-(2**70), 2**70),
    st.text(),
    st.datetimes(datetime(1900, 1, 1), datetime(2900, 1, 1), timezones=st.just(UTC)),
    st.from_regex(r"\A(sum|file|ses|other)_[0-9a-f]{16}\Z"),
)


@given(st.lists(VALUES, max_size=8))
def test_a_position_comes_back_as_it_was_and_from_no_other_text(position):
    cursor = write_cursor(position, of="list", request="what was asked")

    assert read_cursor(cursor, of="list", request="what was asked", refusal="No") == position
    assert unsigned_values(cursor) == position
    with pytest.raises(Invalid):
        read_cursor(f"{cursor}!!!!", of="list", request="what was asked", refusal="No")


@pytest.mark.parametrize(
    "position",
    [
        pytest.param([8_000_000_000, 60_000_000, MOMENT, 1_999, 0xFFFFFF], id="ranked"),
        pytest.param([3, 8_000_000_000, -900_000, "sum_0123456789abcdef"], id="newest first"),
        pytest.param([MOMENT, 120_000, -3, "sum_0123456789abcdef", 0, 0], id="range"),
        pytest.param([None, 120_000, 1, "", 5_000_000, 0], id="message"),
        pytest.param([MOMENT, 2, "ses_0123456789abcdef"], id="timeline"),
        pytest.param([40, 120_000, -3, "sum_0123456789abcdef", 0, 0], id="session"),
    ],
)
def test_a_cursor_has_forty_characters_at_most(position):
    assert len(write_cursor(position, of="list", request="x" * 5000)) <= 40


@given(st.one_of(st.text(), st.from_regex(r"\A[\w-]{0,60}\Z"), st.binary().map(repr)))
def test_what_is_no_cursor_is_refused(text):
    with pytest.raises(Invalid):
        read_cursor(text, of="list", refusal="No")
    assert isinstance(unsigned_values(text), list)

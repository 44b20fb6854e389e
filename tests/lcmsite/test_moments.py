"""Moments come out of the database as Django reads them, whichever way they are read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import DataError, connection
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.django_db

MOMENTS = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC))


def read(moment: object) -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [moment])
        return cursor.fetchone()[0]


@given(MOMENTS)
def test_a_moment_comes_back_as_it_went_in(moment: datetime) -> None:
    found = read(moment)

    assert found == moment
    assert found.tzinfo is UTC


@pytest.mark.parametrize("moment", ["2026-03-07 12:00:00.5+05:30", "2026-03-07T06:30:00.500000Z", "today"])
def test_a_moment_said_in_another_way_is_told_in_utc(moment: str) -> None:
    found = read(moment)

    assert found.utcoffset() == timedelta(0)
    assert moment == "today" or found == datetime(2026, 3, 7, 6, 30, 0, 500_000, tzinfo=UTC)


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "10000-01-01 00:00:00+00", "0044-03-15 12:00:00+00 BC"])
def test_what_is_no_moment_to_python_is_refused_and_not_misread(moment: str) -> None:
    with pytest.raises(DataError):
        read(moment)

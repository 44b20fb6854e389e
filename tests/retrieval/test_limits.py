"""A search that takes too long is called off, and leaves nothing behind."""

from __future__ import annotations

import pytest
from django.db import DataError, connection

from conversations.errors import Unavailable
from retrieval.search.prepare import bounded
from tests.statements import counted_statements

pytestmark = pytest.mark.django_db


def too_slow() -> Unavailable:
    return Unavailable("Too slow.", code="search_timeout")


def value(statement: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


def test_what_takes_too_long_is_refused_and_the_connection_goes_on():
    with pytest.raises(Unavailable) as refusal, bounded(milliseconds=50, refusal=too_slow):
        value("SELECT pg_sleep(30)")

    assert refusal.value.code == "search_timeout"
    assert value("SELECT 1") == 1
    assert value("SELECT current_setting('statement_timeout')") == "0"


def test_later_statements_get_what_is_left():
    with pytest.raises(Unavailable), bounded(milliseconds=300, refusal=too_slow) as deadline:
        value("SELECT pg_sleep(0.2)")
        deadline.impose()
        value("SELECT pg_sleep(0.25)")


def test_other_errors_stay_what_they_are():
    with pytest.raises(DataError), bounded(milliseconds=1000, refusal=too_slow):
        value("SELECT 1 / 0")


def test_an_index_always_serves_a_search():
    with bounded(milliseconds=1000, refusal=too_slow):
        assert value("SELECT current_setting('enable_seqscan')") == "off"

    assert value("SELECT current_setting('enable_seqscan')") == "on"


def test_while_nearly_all_of_the_time_is_left_no_statement_is_spent_on_saying_so():
    with bounded(milliseconds=60_000, refusal=too_slow) as deadline, counted_statements() as said:
        deadline.impose()

    assert said == []

"""Reads of one moment, and how they are planned."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.db import connection, transaction
from psycopg.adapt import AdaptersMap

from conversations.fast.prepared import prepared
from conversations.sql import bigint, numbered, rows, rows_as_planned, snapshot, texts
from retrieval.assembler import ContextAssembler
from tests.factories import a_conversation

_HOW = "SELECT current_setting('plan_cache_mode')"


def how_statements_are_planned() -> str:
    return rows(_HOW)[0][0]


def plans_made() -> tuple[int, int]:
    """Of the statements that read a context: for any values, and for those at hand."""
    return rows(
        "SELECT coalesce(sum(generic_plans), 0)::int, coalesce(sum(custom_plans), 0)::int FROM pg_prepared_statements "
        "WHERE statement ~ 'context_items' AND statement !~ 'pg_prepared_statements'"
    )[0]


def test_a_context_is_read_by_statements_that_are_planned_once(committed_db):
    conversation = a_conversation("a message", "and another")
    assembler = ContextAssembler.from_settings()
    generic, custom = plans_made()

    for _ in range(3):
        assembler.assemble(conversation_id=conversation.conversation_id)

    assert plans_made() == (generic + 3, custom)


def test_what_is_planned_once_is_so_for_this_moment_alone(committed_db):
    before = how_statements_are_planned()

    with snapshot(planned_once=True):
        within = how_statements_are_planned()

    assert (within, how_statements_are_planned()) == ("force_generic_plan", before)
    assert before != within


def test_in_a_transaction_of_somebody_else_plans_are_made_as_they_were(committed_db):
    with transaction.atomic():
        before = how_statements_are_planned()

        with snapshot(planned_once=True):
            within = how_statements_are_planned()

        assert within == before


@pytest.mark.django_db
@pytest.mark.parametrize("given", [[], [""], ["NULL", "a,b", "{}", 'a "b" \\ c\\', " ", "数据库\n\t"]])
def test_texts_reach_the_database_as_they_are(given):
    assert rows("SELECT %s::text[]", [texts(given)]) == [(given,)]


@pytest.mark.django_db
def test_a_statement_is_prepared_once_whatever_the_size_of_the_numbers_in_it():
    given = [1, 40_000, 3_000_000_000]

    told = [rows("SELECT %s AS a_number", [bigint(each)])[0][0] for each in given]

    assert told == given
    assert rows("SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT $1 AS a_number'") == [(1,)]


def types_looked_up(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    looked_up: list[object] = []
    for name in ("get_dumper", "get_loader"):
        looks_up = getattr(AdaptersMap, name)

        def counted(adapters: AdaptersMap, *asked: object, looks_up: Callable[..., object] = looks_up) -> object:
            looked_up.append(asked)
            return looks_up(adapters, *asked)

        monkeypatch.setattr(AdaptersMap, name, counted)
    return looked_up


@pytest.mark.django_db
@pytest.mark.parametrize("ask", [rows, prepared])
def test_how_a_type_is_read_and_written_is_looked_up_once_a_connection(ask, monkeypatch):
    ask("SELECT 'a text', %s + 1 AS a_number", [bigint(1)])
    looked_up = types_looked_up(monkeypatch)

    ask("SELECT %s - 1 AS a_number, 'another' AS a_text", [bigint(3)])

    assert looked_up == []


@pytest.mark.django_db
def test_what_was_read_is_not_held():
    rows("SELECT repeat('a', 1000000)")
    prepared("SELECT repeat('a', 1000000) AS a_text")

    assert [cursor.pgresult.ntuples for cursor in connection.connection.lcm_cursors.values()] == [0, 0]


@pytest.mark.django_db
def test_values_and_columns_of_other_types_are_told_apart_from_one_statement_to_the_next():
    now = datetime(2026, 1, 2, tzinfo=UTC)
    given = {
        "%s::bigint, %s::text, %s::float8": (1, "a", 2.5),
        "%s::text, %s::bytea, %s::timestamptz": ("2", b"a\x00", now),
        "%s::timestamptz, %s::bigint, %s::boolean": (now, 2**40, True),
        "%s::bigint[], %s::text[], %s::text": ([1, 2**40], ["a"], None),
        "%s::text[], %s::bigint[], %s::float8": ([], [3], 3.0),
    }

    for columns, values in given.items():
        for is_binary in (False, True):
            assert rows(f"SELECT {columns}", values, binary=is_binary) == [values]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("statement", "values", "expected"),
    [
        ("SELECT %(b)s || %(a)s || %(b)s || '%%'", {"a": "1", "b": "2", "unused": "3"}, "212%"),
        ("SELECT %s || %s || '%%s'", ["1", "2"], "12%s"),
        ("SELECT '%%' || 'ä'", (), "%ä"),
        ("SELECT 'none'", {"unused": "1"}, "none"),
        ("SELECT " + " || ".join(["%(a)s"] * 1000), {"a": "x"}, "x" * 1000),
    ],
)
def test_values_go_where_the_statement_names_them(statement, values, expected):
    assert rows(statement, values) == [(expected,)]


@pytest.mark.django_db
def test_what_has_its_values_in_it_already_is_sent_as_it_stands():
    assert rows_as_planned("SELECT '%%' || '%s'") == [("%%%s",)]


@pytest.mark.django_db
@pytest.mark.parametrize("wrong", ["SELECT 1 % 2", "SELECT '%d'", "SELECT %(a)d", "SELECT '%"])
def test_a_lone_sign_that_is_no_placeholder_is_refused(wrong):
    with pytest.raises(ValueError, match="no placeholder"):
        rows(wrong, {"a": 1})


@pytest.mark.django_db
def test_a_statement_is_looked_through_for_its_values_once_however_long_it_is():
    statement = "SELECT %(a)s -- " + "x" * 10_000
    rows(statement, {"a": "1"})
    before = numbered.cache_info()

    rows(statement, {"a": "2"})

    assert numbered.cache_info().misses == before.misses

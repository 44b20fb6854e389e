"""Reads of one moment, and how they are planned."""

from __future__ import annotations

import pytest
from django.db import transaction

from conversations.reading import bigint, rows, snapshot, texts
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

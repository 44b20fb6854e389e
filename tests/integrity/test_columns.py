"""Every column of the database has a declared protection, and database and checker do what is declared."""

from __future__ import annotations

import pytest
from django.db import connection

from integrity.column_protection import TABLES, Protection
from integrity.invariants import INVARIANTS

pytestmark = pytest.mark.django_db

CODES = {invariant.code for invariant in INVARIANTS}


def rows(statement: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def test_every_column_of_the_database_has_a_declared_protection():
    live = set(
        rows(
            "SELECT table_name::text, column_name::text FROM information_schema.columns"
            " WHERE table_schema = current_schema()"
        )
    )
    declared = {(table.name, column) for table in TABLES.values() for column in table.columns}
    whole = {table.name for table in TABLES.values() if not table.columns}

    assert {(table, column) for table, column in live - declared if table not in whole} == set(), (
        "decide in integrity/column_protection.toml what protects these"
    )
    assert whole <= {table for table, _ in live}
    assert declared - live == set(), "these are gone"


def test_every_named_invariant_exists():
    columns = [column for table in TABLES.values() for column in table.columns.values()]
    named = {code for column in columns for code in column.found_by}
    named |= {code for table in TABLES.values() for code in table.removal}

    assert named - CODES == set()


def test_every_column_is_found_by_an_invariant_or_has_a_reason():
    undecided = [
        f"{table.name}.{name}"
        for table in TABLES.values()
        for name, column in table.columns.items()
        if not (column.note if column.protection is Protection.OPERATIONAL else column.found_by or column.note)
    ]
    unsaid = [table.name for table in TABLES.values() if not (table.removal or table.removal_note)]

    assert undecided == []
    assert unsaid == []


def test_the_triggers_seal_exactly_the_declared_columns():
    """A trigger fires on an update of these columns alone, so that counters cost nothing, and seals these."""
    found = rows(
        """
        SELECT t.tgrelid::regclass::text, string_to_array(encode(t.tgargs, 'escape'), '\\000'), (
                   SELECT array_agg(a.attname::text) FROM unnest(t.tgattr::int2[]) AS number
                   JOIN pg_attribute a ON a.attrelid = t.tgrelid AND a.attnum = number)
        FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE p.proname = 'lcm_seal_row'
        """
    )

    sealed = {table: set(arguments) - {""} for table, arguments, _ in found}
    firing = {table: set(columns) - {"row_seal"} for table, _, columns in found}
    declared = {table.name: set(table.sealed_columns) for table in TABLES.values() if table.row_seal}
    assert sealed == declared
    assert firing == declared


def test_no_row_seal_is_computed_when_a_message_is_appended():
    appended = {"messages", "message_parts", "context_items", "file_references"}
    counted = {"next_seq", "total_tokens", "active_messages", "active_tokens", "chain_head", "updated_at"}

    assert not any(TABLES[table].row_seal for table in appended)
    assert counted.isdisjoint(TABLES["conversations"].sealed_columns)

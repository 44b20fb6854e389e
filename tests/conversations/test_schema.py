"""The live database against the specification's own DDL: both are read back from PostgreSQL's catalogue."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from tests.architecture.spec_schema import DDL, OTHER_EXPRESSIONS
from tests.factories import a_conversation, a_store
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db

COLUMNS = """
    SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
           pg_get_expr(d.adbin, d.adrelid)
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
    ORDER BY c.relname, a.attnum
"""
# 18 lists NOT NULL among the constraints; the columns have told that already.
CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
    FROM pg_constraint
    WHERE connamespace = current_schema()::regnamespace AND contype <> 'n' AND conrelid <> 0
"""
INDEXES = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()"
ENUMS = """
    SELECT t.typname, array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
    FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid
    WHERE t.typnamespace = current_schema()::regnamespace GROUP BY t.typname
"""


@pytest.fixture
def schemas():
    """Asks a question of the specification's schema, made beside ours, and of ours."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA specification")
        cursor.execute("SET LOCAL search_path = specification, public")
        cursor.execute(DDL)

        def ask(question: str) -> tuple[list[tuple], list[tuple]]:
            answers = []
            for schema in ("specification", "public"):
                # Alone on the path, so that names are shown without their schema.
                cursor.execute(f"SET LOCAL search_path = {schema}")
                cursor.execute(question)
                rows = [
                    tuple(each.replace(f"{schema}.", "") if isinstance(each, str) else each for each in row)
                    for row in cursor.fetchall()
                ]
                answers.append(rows)
            return answers[0], answers[1]

        yield ask


def test_every_column_of_the_specification_is_there_with_its_type_and_default(schemas):
    wanted, ours = schemas(COLUMNS)

    as_we_write_it = [(*row[:-1], OTHER_EXPRESSIONS.get(row[:2], row[-1])) for row in wanted]
    assert len(wanted) == 71
    assert set(as_we_write_it) - set(ours) == set()


def test_columns_of_our_own_never_have_to_be_given_by_who_knows_only_the_specification(schemas):
    """Of a table that others may write to by hand; the rest is written by our own services alone."""
    wanted, ours = schemas(COLUMNS)

    added = {row for row in ours if row[0] == "large_files"} - set(wanted)
    assert [row[1] for row in added if row[3] and row[-1] is None] == []


@pytest.mark.parametrize(("question", "count"), [(CONSTRAINTS, 22), (INDEXES, 18), (ENUMS, 4)])
def test_every_constraint_index_and_enum_of_the_specification_is_there_by_its_name(schemas, question, count):
    wanted, ours = (set(map(repr, rows)) for rows in schemas(question))

    assert len(wanted) == count
    assert wanted - ours == set()


def test_a_database_of_an_earlier_version_is_refused_with_what_to_do():
    MigrationRecorder(connection).record_applied("conversations", "0001_store")

    with pytest.raises(CommandError, match=r"lcm ledger export .*lcm ledger import .* docs/upgrade.md"):
        call_command("migrate", verbosity=0)


@pytest.mark.parametrize("table", ["messages", "summaries"])
def test_a_text_of_some_kilobytes_stays_in_its_row(table):
    said = "The migration ran twice. " * 120
    conversation_id = a_conversation(said).conversation_id
    a_summary_of(a_store(), conversation_id, seqs=[1], content=said)

    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_column_compression(content) FROM {table}")
        # What has to leave its row is compressed first.
        assert cursor.fetchall() == [(None,)]

"""A database with real commits, for tests with several connections or processes.

LCM's triggers refuse TRUNCATE, with which Django would clean up. In the session role `replica`, PostgreSQL does not
fire triggers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.apps import apps
from django.db import connection, transaction
from pytest_django import DjangoDbBlocker

# Sequences of tables that migrations write to; they are not reset.
OF_MIGRATIONS = ("auth_permission_id_seq", "django_content_type_id_seq", "django_migrations_id_seq")


@pytest.fixture
def committed_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The test database with real commits; all tables are emptied afterwards."""
    with committed(django_db_blocker):
        yield


@contextmanager
def committed(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The same as `committed_db`, for fixtures that last longer than a test."""
    with django_db_blocker.unblock():
        try:
            yield
        finally:
            empty_all_tables()
            connection.close()


def another_connection() -> psycopg.Connection:
    """Open another connection to the test database, beside Django's own."""
    return psycopg.connect(**connection.get_connection_params() | {"cursor_factory": None})


def empty_all_tables() -> None:
    """Delete all rows and dead rows, and restart ids at 1.

    Within a transaction, only the rows are deleted. Only tables that have been written to are emptied, because most
    tests write to few tables.
    """
    tables = {
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        # Only migrations write to these two.
        if model._meta.label not in ("contenttypes.ContentType", "auth.Permission") and model._meta.managed
    }
    # The queues' own tables: the next test would run the tasks that are left in them.
    tables |= {table for table in connection.introspection.table_names() if table.startswith("huey_")}
    # A transaction may be rolled back, and the rows come back: their ids must not be used again.
    is_undone = connection.in_atomic_block
    with connection.cursor() as cursor:
        with transaction.atomic():
            cursor.execute("SET LOCAL session_replication_role = replica")
            # Wait until other transactions have committed.
            cursor.execute(f"LOCK TABLE {', '.join(sorted(tables))}")
            cursor.execute(
                "SELECT relname FROM unnest(%s::text[]) AS relname WHERE pg_relation_size(relname::regclass) > 0",
                [sorted(tables)],
            )
            written = [table for (table,) in cursor.fetchall()]
            for table in written:
                cursor.execute(f"DELETE FROM {table}")
            if not is_undone:
                cursor.execute(
                    "SELECT setval(sequencename::regclass, start_value, false) FROM pg_sequences"
                    " WHERE last_value IS NOT NULL AND sequencename != ALL(%s)",
                    [list(OF_MIGRATIONS)],
                )
            cursor.execute("SET LOCAL session_replication_role = origin")
        if written and not is_undone:
            cursor.execute(f"VACUUM {', '.join(written)}")
            # Reset the statistics to those of a new table: if VACUUM found a table empty, the planner expects no rows.
            cursor.execute("UPDATE pg_class SET reltuples = -1 WHERE oid = ANY (%s::regclass[])", [written])

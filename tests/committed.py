"""A database that commits: for tests with several connections, processes or threads.

Django's own way to clean up, TRUNCATE, is refused by our triggers; as a replica, PostgreSQL does not fire them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.apps import apps
from django.db import connection, transaction
from pytest_django import DjangoDbBlocker

# Sequences of what migrations write.
OF_MIGRATIONS = ("auth_permission_id_seq", "django_content_type_id_seq", "django_migrations_id_seq")


@pytest.fixture
def committed_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The test database, open and committing; emptied afterwards."""
    with committed(django_db_blocker):
        yield


@contextmanager
def committed(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The same for fixtures that last longer than a test."""
    with django_db_blocker.unblock():
        try:
            yield
        finally:
            empty_all_tables()
            connection.close()


def another_connection() -> psycopg.Connection:
    """Connect to the test database beside Django's own connection."""
    return psycopg.connect(**connection.get_connection_params() | {"cursor_factory": None})


def empty_all_tables() -> None:
    """As if nothing had ever been written: no row, no dead one, and ids from 1 (in a transaction, no row).

    Most tests write to few tables, and to truncate all of them takes longer than most tests.
    """
    tables = {
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        # What migrations write, and nobody else.
        if model._meta.label not in ("contenttypes.ContentType", "auth.Permission") and model._meta.managed
    }
    # The queues' own tables: what is left in them would be taken for the next test's.
    tables |= {table for table in connection.introspection.table_names() if table.startswith("huey_")}
    # In a transaction, rows come back at its end: their ids must not be given again.
    is_undone = connection.in_atomic_block
    with connection.cursor() as cursor:
        with transaction.atomic():
            cursor.execute("SET LOCAL session_replication_role = replica")
            # What others are about to commit is waited for.
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
            # As of a table that is new; of one that was found empty, the planner expects no rows.
            cursor.execute("UPDATE pg_class SET reltuples = -1 WHERE oid = ANY (%s::regclass[])", [written])

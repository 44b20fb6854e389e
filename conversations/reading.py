"""Reads that belong together: rows of prepared statements, all from one moment of the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import psycopg
from django.db import connection, transaction


@contextmanager
def snapshot() -> Iterator[None]:
    """Let every read in the block see one moment of the database, whatever others commit meanwhile; nothing is written.

    Inside a transaction that is open already the reads are that transaction's, as isolated as it is.
    """
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def rows(statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a statement that the server prepares once a connection; see `db.prepared` for what that saves."""
    connection.ensure_connection()
    connection.validate_no_broken_transaction()
    if connection.queries_logged:
        connection.queries_log.append({"sql": statement, "time": "0"})
    try:
        with connection.wrap_database_errors, psycopg.Cursor(cast(Any, connection.connection)) as cursor:
            cursor.execute(cast(Any, statement), values, prepare=True)
            return cursor.fetchall()
    except Exception:
        if connection.in_atomic_block:
            transaction.set_rollback(True)
        raise


def array(ids: Iterable[int]) -> str:
    """Whole numbers as a value for `= ANY(%s)`: the driver would take longer over a list of them than the server."""
    return "{" + ",".join(map(str, ids)) + "}"

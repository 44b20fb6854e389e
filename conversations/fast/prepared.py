"""Run statements that the server prepares once for a connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection, transaction
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper
from psycopg.rows import dict_row, tuple_row
from psycopg.types.numeric import Int8

Values = Sequence[Any] | Mapping[str, Any]


class PreparedCursor(psycopg.Cursor[Any]):
    """The driver's cursor with server-side binding, and `prepare` always on."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> PreparedCursor:
        return super().execute(query, params, **{"prepare": True, **options})


class LoggedCursor(CursorDebugWrapper):
    """Log the statement without its values, which the server binds."""

    def debug_sql(self, sql: Any = None, params: Any = None, *_: Any, many: bool = False, **__: Any) -> Any:
        return super().debug_sql(sql, params, many=many)


@contextmanager
def prepared_cursor(
    *,
    kind: type[psycopg.Cursor[Any]] = PreparedCursor,
    row_factory: Callable[[Any], Any] = tuple_row,
) -> Iterator[CursorWrapper]:
    """Open a cursor on Django's connection, in its transaction, with its errors.

    Django's own cursor binds values on the client, so that the server can prepare nothing. An error in an atomic block
    marks the block for rollback: a caller that catches the error cannot commit half of its work.
    """
    connection.ensure_connection()
    cursor = kind(connection.connection, row_factory=row_factory)
    wrapped = (LoggedCursor if connection.queries_logged else CursorWrapper)(cursor, connection)
    with transaction.mark_for_rollback_on_error(connection.alias), wrapped:
        yield wrapped


def rows(statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
    """Return all rows of a prepared statement."""
    with prepared_cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


def first_row(statement: str, values: Values = ()) -> dict[str, Any] | None:
    """Return the first row of a prepared statement as a dictionary, or None."""
    with prepared_cursor(row_factory=dict_row) as cursor:
        cursor.execute(statement, values)
        found: Any = cursor.fetchone()
        return found


def bigint(given: int) -> int:
    """Pass an integer as bigint: one prepared statement instead of one per type."""
    return Int8(given)

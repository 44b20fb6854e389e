"""Run statements that the server prepares: planned once for a connection, not at every execution."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper
from psycopg.pq import Format
from psycopg.rows import dict_row, tuple_row
from psycopg.types.numeric import Int8

Values = Sequence[Any] | Mapping[str, Any]


class PreparedCursor(psycopg.Cursor[Any]):
    """The driver's cursor with server-side binding, and `prepare` always on."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> PreparedCursor:
        return super().execute(query, params, **{"prepare": True, **options})


class LoggedCursor(CursorDebugWrapper):
    """Log the statement as it is written: with values bound by the server, there is no text that has them."""

    def debug_sql(
        self, sql: Any = None, params: Any = None, use_last_executed_query: bool = False, many: bool = False
    ) -> Any:
        return super().debug_sql(sql, params, many=many)


@contextmanager
def prepared_cursor(
    *,
    kind: type[psycopg.Cursor[Any]] = PreparedCursor,
    row_factory: Callable[[Any], Any] = tuple_row,
    binary: bool = False,
) -> Iterator[CursorWrapper]:
    """A cursor on Django's connection, in its transaction if there is one, and with its errors.

    Django's own binds values on the client, so the server could prepare nothing. An error in an atomic block marks the
    block for rollback: a caller that catches it cannot commit half of its work.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    connection.ensure_connection()
    cursor = kind(connection.connection, row_factory=row_factory)
    cursor.format = Format.BINARY if binary else Format.TEXT
    wrapped = (LoggedCursor if connection.queries_logged else CursorWrapper)(cursor, connection)
    with transaction.mark_for_rollback_on_error(connection.alias), wrapped:
        yield wrapped


def rows(statement: str, values: Values = (), *, binary: bool = False) -> list[tuple[Any, ...]]:
    """All rows of a prepared statement; `binary` has the server send numbers as they are, and enums as bytes."""
    with prepared_cursor(binary=binary) as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


def first_row(statement: str, values: Values = ()) -> dict[str, Any] | None:
    """The first row of a prepared statement by column, or None."""
    with prepared_cursor(row_factory=dict_row) as cursor:
        cursor.execute(statement, values)
        found: Any = cursor.fetchone()
        return found


def rows_as_planned(statement: str, *, binary: bool = False) -> list[tuple[Any, ...]]:
    """All rows of a statement that has its values in it: the server plans it for these values each time."""
    with prepared_cursor(kind=psycopg.Cursor, binary=binary) as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def bigint(given: int) -> int:
    """A whole number as `bigint`. The driver takes the smallest type that holds it, and each type is prepared apart."""
    return Int8(given)

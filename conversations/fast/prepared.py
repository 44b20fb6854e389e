"""A cursor whose statements the server prepares: planned once for a connection, not at every execution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper
from psycopg.pq import Format
from psycopg.rows import tuple_row


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

"""A way past the ORM for the few statements that run all day: prepared by the server, planned once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from psycopg.rows import TupleRow, tuple_row


def prepared(statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> dict[str, Any] | None:
    """The first row of a prepared statement on Django's own connection, in its own transaction if there is one.

    Django's cursor binds on the client, so nothing it runs is ever prepared: that is a third of the time of a small
    statement. Errors come as Django's own, as from any other query.
    """
    # Looked up once: `django.db.connection` would do so at every mention.
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.connection is None:
        connection.ensure_connection()
    connection.validate_no_broken_transaction()
    if connection.queries_logged:
        # Whoever counts queries counts these, too.
        connection.queries_log.append({"sql": statement, "time": "0"})
    try:
        with connection.wrap_database_errors:
            cursor = _cursor_of(connection.connection)
            cursor.execute(statement, values, prepare=True)
            row = cursor.fetchone()
            return None if row is None else dict(zip(_names_of(statement, cursor), row, strict=True))
    except Exception:
        if connection.in_atomic_block:
            transaction.set_rollback(True)
        raise


def _cursor_of(connection: Any) -> psycopg.Cursor[TupleRow]:
    """The one cursor for these statements, kept with its connection: a new one each time costs a tenth of an append."""
    if not hasattr(connection, "lcm_cursor"):
        connection.lcm_cursor = psycopg.Cursor(connection, row_factory=tuple_row)
    return cast("psycopg.Cursor[TupleRow]", connection.lcm_cursor)


# By statement: they are few, and asking the driver each time takes as long as the values do.
_NAMES: dict[str, tuple[str, ...]] = {}


def _names_of(statement: str, cursor: psycopg.Cursor[TupleRow]) -> tuple[str, ...]:
    """What the columns of the cursor's answer to the statement are called."""
    names = _NAMES.get(statement)
    if names is None:
        names = _NAMES[statement] = tuple(column.name for column in cursor.description or ())
    return names

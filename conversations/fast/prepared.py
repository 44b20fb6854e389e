"""A way past the ORM for the few statements that run all day: prepared by the server, planned once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.rows import TupleRow, tuple_row


def prepared(statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> dict[str, Any] | None:
    """The first row of a prepared statement on Django's own connection, in its own transaction if there is one.

    Django's cursor binds on the client, so nothing it runs is ever prepared: that is a third of the time of a small
    statement. Errors come as Django's own, as from any other query.
    """
    connection = opened()
    connection.validate_no_broken_transaction()
    if connection.queries_logged:
        # Whoever counts queries counts these, too.
        connection.queries_log.append({"sql": statement, "time": "0"})
    try:
        with connection.wrap_database_errors:
            cursor = cursor_for(statement, connection)
            cursor.execute(cast(Any, statement), values, prepare=True)
            try:
                row = cursor.fetchone()
                return None if row is None else dict(zip(_names_of(statement, cursor), row, strict=True))
            finally:
                let_go(cursor)
    except Exception:
        if connection.in_atomic_block:
            transaction.set_rollback(True)
        raise


def opened() -> BaseDatabaseWrapper:
    """Django's own connection, looked up once: `django.db.connection` would do so at every mention."""
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.connection is None:
        connection.ensure_connection()
    return connection


def cursor_for(
    statement: str | bytes, connection: BaseDatabaseWrapper, kind: type[psycopg.Cursor[TupleRow]] = psycopg.Cursor
) -> psycopg.Cursor[TupleRow]:
    """The one cursor of its kind for the statements that go past Django, to execute this one next.

    It is kept with its connection: a new one each time costs a tenth of an append. `let_go` of what it has read.
    """
    driver: Any = connection.connection
    kept = vars(driver).setdefault("lcm_cursors", {})
    cursor = kept.get(kind)
    if cursor is None:
        cursor = kept[kind] = kind(driver, row_factory=tuple_row)
    elif cursor._last_query is not None:
        # For any other statement than its last, a cursor of psycopg (3.3) looks up the types of all values and columns
        # anew. What it found out before holds as well; only behind an error, it does forget.
        cursor._last_query = statement
    return cast("psycopg.Cursor[TupleRow]", cursor)


def let_go(cursor: psycopg.Cursor[TupleRow]) -> None:
    """Hold no longer what was read, which a cursor would until it reads again: megabytes, perhaps."""
    if cursor.pgresult is not None:
        cursor.pgresult.clear()


# By statement: they are few, and asking the driver each time takes as long as the values do.
_NAMES: dict[str, tuple[str, ...]] = {}


def _names_of(statement: str, cursor: psycopg.Cursor[TupleRow]) -> tuple[str, ...]:
    """What the columns of the cursor's answer to the statement are called."""
    names = _NAMES.get(statement)
    if names is None:
        names = _NAMES[statement] = tuple(column.name for column in cursor.description or ())
    return names

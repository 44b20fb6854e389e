"""Reads that belong together: rows of prepared statements, all from one moment of the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from psycopg.types.numeric import Int8

# Said past the driver, which would be told first how its transactions begin, then back, and take longer to say so.
_BEGIN = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# The planner may think a plan for the values at hand worth its while for ever, and to make one can take longer than to
# follow it.
_PLANNED_ONCE = "SELECT set_config('plan_cache_mode', 'force_generic_plan', true)"


@contextmanager
def snapshot(*, planned_once: bool = False) -> Iterator[None]:
    """Let every read in the block see one moment of the database, whatever others commit meanwhile; nothing is written.

    Inside a transaction that is open already the reads are that transaction's, as isolated as it is. `planned_once`:
    what is prepared here is surely planned once, for any values.
    """
    # Looked up once: `django.db.connection` would do so at every mention.
    current = connections[DEFAULT_DB_ALIAS]
    if current.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with current.wrap_database_errors:
            _begin(cast("psycopg.Connection[Any]", current.connection))
        if planned_once:
            rows(_PLANNED_ONCE)
        yield


def _begin(driver: psycopg.Connection[Any]) -> None:
    """The transaction that the driver would begin with its first statement; it sees that there is one."""
    if driver.pgconn.exec_(_BEGIN).status != psycopg.pq.ExecStatus.COMMAND_OK:
        # Only a connection that is lost begins none.
        raise psycopg.OperationalError(driver.pgconn.get_error_message())


def rows(
    statement: str, values: Sequence[Any] | Mapping[str, Any] = (), *, binary: bool = False
) -> list[tuple[Any, ...]]:
    """All rows of a statement that the server prepares once a connection; see `db.prepared` for what that saves.

    `binary`: in the server's own form, of which hundreds of numbers are read in a third of the time; of enums, that is
    bytes.
    """
    return _asked(statement, values, prepare=True, binary=binary)


def bound(statement: str, values: Mapping[str, Any]) -> str:
    """The statement with its values in it: what is planned for them (`rows_as_planned`), alone or as a piece."""
    current = connections[DEFAULT_DB_ALIAS]
    current.ensure_connection()
    return psycopg.ClientCursor(cast(Any, current.connection)).mogrify(cast(Any, statement), values)


def rows_as_planned(statement: str, *, binary: bool = False) -> list[tuple[Any, ...]]:
    """All rows of a statement that has its values in it, for which the server plans it."""
    return _asked(statement, None, prepare=False, binary=binary)


def _asked(
    statement: str, values: Sequence[Any] | Mapping[str, Any] | None, *, prepare: bool, binary: bool
) -> list[tuple[Any, ...]]:
    current = connections[DEFAULT_DB_ALIAS]
    current.ensure_connection()
    current.validate_no_broken_transaction()
    if current.queries_logged:
        # Whoever counts queries counts these, too.
        current.queries_log.append({"sql": statement, "time": "0"})
    try:
        with current.wrap_database_errors:
            # A new cursor each time, and not kept: it holds what it has read last until it reads again.
            cursor = psycopg.Cursor(cast(Any, current.connection))
            return cursor.execute(cast(Any, statement), values, prepare=prepare, binary=binary).fetchall()
    except Exception:
        if current.in_atomic_block:
            transaction.set_rollback(True)
        raise


def bigint(given: int) -> int:
    """A whole number as a value of one type, where the driver takes the least that holds it.

    The server prepares a statement once for all types of its values: of two places, it would do so up to four times.
    """
    return Int8(given)


def array(ids: Iterable[int]) -> str:
    """Whole numbers as a value for `= ANY(%s)`: the driver would take longer over a list of them than the server."""
    return "{" + ",".join(map(str, ids)) + "}"


def texts(given: Iterable[str]) -> str:
    """The same of texts, of which none is to be NULL."""
    return "{" + ",".join('"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"' for each in given) + "}"

"""An atomic block of Django's for reads of one moment, which begins and ends in little more than half the time."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import Atomic
from psycopg.pq import ExecStatus

# Said past the driver, which would be told first how its transactions begin, then back, and take longer to say so.
_BEGIN = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# The planner may think a plan for the values at hand worth its while for ever, and to make one can take longer than to
# follow it.
_BEGIN_PLANNED_ONCE = _BEGIN + b"; SET LOCAL plan_cache_mode = force_generic_plan"
_COMMIT = b"COMMIT"


class ReadingBlock(Atomic):
    """The outermost block of a connection that commits by itself; `begin` it before anything is read.

    What Django does at either end, for any database and whatever has happened, is done here at once where nothing has:
    its connection is left in the very state that its own block leaves it in. All else is left to that block.
    """

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        super().__init__(connection.alias, savepoint=True, durable=False)
        # Of what belongs to it, its stubs leave half out.
        self._connection: Any = connection

    def __enter__(self) -> None:
        current = self._connection
        if current.queries_logged:
            # Whoever counts queries counts the ends of transactions, too.
            super().__enter__()
            return
        with current.wrap_database_errors:
            current.connection.set_autocommit(False)
        current.autocommit = False
        current.commit_on_exit, current.needs_rollback = True, False
        current.in_atomic_block = True
        current.atomic_blocks.append(self)

    def begin(self, *, planned_once: bool) -> None:
        """The transaction that the driver would begin with its first statement; it sees that there is one."""
        with self._connection.wrap_database_errors:
            driver = self._connection.connection.pgconn
            if driver.exec_(_BEGIN_PLANNED_ONCE if planned_once else _BEGIN).status != ExecStatus.COMMAND_OK:
                # Only a connection that is lost begins none.
                raise psycopg.OperationalError(driver.get_error_message())

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc_type is not None or not self._is_plain() or not self._committed():
            super().__exit__(exc_type, exc_value, traceback)
            return
        current = self._connection
        current.atomic_blocks.pop()
        current.in_atomic_block = False
        current.errors_occurred = False
        with current.wrap_database_errors:
            current.connection.set_autocommit(True)
        current.autocommit = True

    def _is_plain(self) -> bool:
        """Whether all that is left to do is to end a transaction in which nothing failed, and nobody waits for it."""
        current = self._connection
        return not (current.needs_rollback or current.run_on_commit or current.queries_logged)

    def _committed(self) -> bool:
        """False on a connection that is lost: Django finds it lost, too, and knows what is to be done."""
        try:
            return bool(self._connection.connection.pgconn.exec_(_COMMIT).status == ExecStatus.COMMAND_OK)
        except psycopg.Error:
            return False

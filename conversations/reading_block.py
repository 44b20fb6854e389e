"""An atomic block of Django's for reads of one moment, whose ends are hardly waited for."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import psycopg
from django.db import Error
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import Atomic
from psycopg import generators
from psycopg.abc import PQGen
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

    The server is told of either end before its answer is needed: it begins while the first statement is made ready,
    and ends while an answer is made of what was read. To wait both times would be up to a tenth of a search.
    """

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        super().__init__(connection.alias, savepoint=True, durable=False)
        # Of what belongs to it, its stubs leave half out.
        self._connection: Any = connection
        self._driver: Any = None
        self._is_ending = False

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
        self._driver = self._connection.connection
        with self._connection.wrap_database_errors:
            self._send(_BEGIN_PLANNED_ONCE if planned_once else _BEGIN, meanwhile=self._answered)

    def nothing_more_is_read(self) -> None:
        """End the transaction by now; whoever reads in the block after all is in error, and told so."""
        if self._is_ending or not self._is_plain():
            return
        with self._connection.wrap_database_errors:
            self._settle()
            self._send(_COMMIT, meanwhile=_refused)
        self._is_ending = True

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._is_over(went_well=exc_type is None):
            super().__exit__(exc_type, exc_value, traceback)
            return
        current = self._connection
        current.atomic_blocks.pop()
        current.in_atomic_block = False
        current.errors_occurred = False
        with current.wrap_database_errors:
            current.connection.set_autocommit(True)
        current.autocommit = True

    def _is_over(self, *, went_well: bool) -> bool:
        """Whether nothing is left to do for Django's block; in any case, the server has answered whatever it was sent.

        False on a connection that is lost: Django finds it lost, too, and knows what is to be done.
        """
        try:
            if went_well:
                self.nothing_more_is_read()
            self._settle()
        except (psycopg.Error, Error):
            return False
        return went_well and self._is_ending and self._is_plain()

    def _is_plain(self) -> bool:
        """Whether all that is left to do is to end a transaction in which nothing failed, and nobody waits for it."""
        current = self._connection
        return not (current.needs_rollback or current.run_on_commit or current.queries_logged)

    def _send(self, command: bytes, *, meanwhile: Callable[[], PQGen[None]]) -> None:
        """Send it; `meanwhile` is what the driver (psycopg 3.3) does first, whatever it is to execute.

        Nothing goes to the server otherwise before that has answered.
        """
        self._driver.pgconn.send_query(command)
        # Where it would begin a transaction itself.
        self._driver._start_query = meanwhile

    def _settle(self) -> None:
        if "_start_query" in vars(self._driver):
            self._driver.wait(self._answered())

    def _answered(self) -> PQGen[None]:
        """Wait for the answer to what was sent."""
        del self._driver._start_query
        results = yield from generators.execute(self._driver.pgconn)
        if results[-1].status != ExecStatus.COMMAND_OK:
            # Only a connection that is lost refuses.
            raise psycopg.OperationalError(self._driver.pgconn.get_error_message())


def _refused() -> PQGen[None]:
    raise RuntimeError("Nothing more was to be read in this block, and now something is.")

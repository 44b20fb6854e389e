"""The pool gives out connections that work, however the request before left them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from django.conf import settings as site
from django.db import OperationalError, connection, transaction

from lcmsite.connections import connect

pytestmark = pytest.mark.usefixtures("committed_db")

OFTEN = 3 * site.DEPLOYMENT.pool_size


def backend() -> int:
    """The server's process that answers; the connection then goes back to the pool, as at the end of a request."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return cursor.fetchone()[0]
    finally:
        connection.close()


def idle_backends(number: int = 3) -> list[int]:
    """Those of connections that were in use at once, and now lie in the pool."""
    connection.close()
    pool = connection.pool
    pool.open()
    several = [pool.getconn() for _ in range(number)]
    for each in several:
        pool.putconn(each)
    return [each.info.backend_pid for each in several]


def test_connections_that_work_are_used_again() -> None:
    pids = [backend() for _ in range(OFTEN)]

    assert len(set(pids)) <= site.DEPLOYMENT.pool_size
    assert backend() in pids


def test_connections_cut_while_idle_are_replaced_without_an_error() -> None:
    pids = idle_backends()

    with connect(autocommit=True) as outside:
        outside.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid", [pids])

    assert all(backend() not in pids for _ in range(OFTEN))


def test_after_a_restart_only_the_first_request_may_time_out(monkeypatch) -> None:
    pids = idle_backends(site.DEPLOYMENT.pool_size)

    with connect(autocommit=True) as outside:
        outside.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid", [pids])
    with monkeypatch.context() as hasty, suppress(OperationalError):
        hasty.setattr(connection.pool, "timeout", 0.5)
        backend()

    assert all(backend() not in pids for _ in range(OFTEN))


def left_without_autocommit() -> None:
    transaction.set_autocommit(False)
    connection.close_if_unusable_or_obsolete()


def left_within_a_transaction() -> None:
    with transaction.atomic():
        connection.close()


def left_after_an_error() -> None:
    with pytest.raises(OperationalError), connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    connection.close_if_unusable_or_obsolete()


@pytest.mark.parametrize("left", [left_without_autocommit, left_within_a_transaction, left_after_an_error])
def test_a_request_finds_no_state_of_the_one_before(left: Callable[[], None]) -> None:
    left()

    with connection.cursor() as cursor:
        cursor.execute("SELECT txid_current()")
        cursor.execute("SELECT 1 WHERE txid_current_if_assigned() IS NULL")
        in_autocommit = cursor.fetchone()

    assert in_autocommit == (1,)
    assert connection.get_autocommit()
    with transaction.atomic():
        assert connection.in_atomic_block

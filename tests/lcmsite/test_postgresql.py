"""The pool gives out connections that work, without a question to the server before each use."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.conf import settings
from django.contrib.postgres.signals import get_citext_oids, get_hstore_oids
from django.core.cache import close_caches
from django.core.signals import request_finished, request_started
from django.db import OperationalError, close_old_connections, connection, transaction
from django.db.backends.signals import connection_created

from lcmsite.connections import connect
from lcmsite.going_without import go_without
from tests.statements import counted_statements

pytestmark = pytest.mark.usefixtures("committed_db")

OFTEN = 3 * settings.DEPLOYMENT.pool_size


def backend() -> int:
    """The server's process that answers; the connection then goes back to the pool, as at the end of a request."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return cursor.fetchone()[0]
    finally:
        connection.close()


def idle_backends() -> list[int]:
    """Those of a few connections that were in use at once, and now lie in the pool, the first to be given out."""
    # Whoever has one beside them would bring it back last, and nobody would come to the others.
    connection.close()
    pool = connection.pool
    pool.open()
    several = [pool.getconn() for _ in range(3)]
    for each in several:
        pool.putconn(each)
    return [each.info.backend_pid for each in several]


def test_connections_that_work_are_used_again() -> None:
    pids = [backend() for _ in range(OFTEN)]

    assert len(set(pids)) <= settings.DEPLOYMENT.pool_size
    assert backend() in pids


def test_the_connection_that_came_back_last_is_given_out_next() -> None:
    pids = idle_backends()

    again = idle_backends()

    assert again == pids[::-1]


def test_connections_cut_while_nobody_used_them_are_replaced_and_nobody_notices() -> None:
    pids = idle_backends()

    with connect(autocommit=True) as outside:
        outside.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid", [pids])

    assert all(backend() not in pids for _ in range(OFTEN))
    assert not {*idle_backends()} & {*pids}


def rested() -> None:
    """Ask something and give the connection back, as a request does in the end."""
    connection.ensure_connection()
    connection.close_if_unusable_or_obsolete()
    assert connection.connection is None


def test_behind_a_connection_that_left_all_in_order_the_next_is_not_set_up_anew() -> None:
    rested()
    set_up: list[object] = []
    connection_created.connect(note := lambda **_: set_up.append(1))

    rested()

    connection_created.disconnect(note)
    assert set_up == []


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


def left_to_the_pool_by_somebody_else_without_autocommit() -> None:
    other = connection.pool.getconn()
    other.autocommit = False
    connection.pool.putconn(other)


@pytest.mark.parametrize(
    "left",
    [
        left_without_autocommit,
        left_within_a_transaction,
        left_after_an_error,
        left_to_the_pool_by_somebody_else_without_autocommit,
    ],
)
def test_what_one_request_left_no_other_finds(left: Callable[[], None]) -> None:
    rested()
    left()

    with connection.cursor() as cursor:
        cursor.execute("SELECT txid_current()")
        cursor.execute("SELECT 1 WHERE txid_current_if_assigned() IS NULL")
        in_autocommit = cursor.fetchone()

    assert in_autocommit == (1,)
    assert connection.get_autocommit()
    with transaction.atomic():
        assert connection.in_atomic_block
    rested()


def test_no_request_begins_with_a_look_after_connections_that_there_are_not() -> None:
    # Django's test client has it listen again.
    go_without()

    was_listening = request_started.disconnect(close_old_connections)

    assert not was_listening


def test_a_connection_is_taken_without_a_question_for_types_that_there_are_not() -> None:
    connection.close()
    get_hstore_oids.cache_clear()
    get_citext_oids.cache_clear()

    with counted_statements() as statements:
        connection.ensure_connection()

    # One that had to be made is told its time zone.
    assert [each for each in statements if "TimeZone" not in each] == []


def test_no_request_ends_with_a_look_after_caches_that_there_are_not() -> None:
    was_listening = request_finished.disconnect(close_caches)

    assert not was_listening

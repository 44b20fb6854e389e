"""The pool gives out connections that work, without a question to the server before each use."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.contrib.postgres.signals import get_citext_oids, get_hstore_oids
from django.core.cache import close_caches
from django.core.signals import request_finished
from django.db import connection

from lcmsite.connections import connect
from tests.statements import counted_statements

pytestmark = pytest.mark.usefixtures("committed_db")

# Enough to have had every connection that earlier tests may have left in the pool.
OFTEN = 3 * settings.DEPLOYMENT.pool_size


def backend() -> int:
    """The server's process that answers; the connection then goes back to the pool, as at the end of a request."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return cursor.fetchone()[0]
    finally:
        connection.close()


def test_connections_that_work_are_used_again() -> None:
    pids = [backend() for _ in range(OFTEN)]

    assert len(set(pids)) <= settings.DEPLOYMENT.pool_size
    assert backend() in pids


def test_connections_cut_while_nobody_used_them_are_replaced_and_nobody_notices() -> None:
    pids = sorted({backend() for _ in range(OFTEN)})

    with connect(autocommit=True) as outside:
        outside.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid", [pids])

    assert all(backend() not in pids for _ in range(OFTEN))


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

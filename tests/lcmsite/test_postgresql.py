"""The pool gives out connections that work, without a question to the server before each use."""

from __future__ import annotations

import pytest
from django.db import connection, connections

from lcmsite.connections import connect

pytestmark = pytest.mark.usefixtures("committed_db")


def backend() -> int:
    """The server's process that answers; the connection then goes back to the pool, as at the end of a request."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return cursor.fetchone()[0]
    finally:
        connection.close()


def test_a_connection_that_works_is_used_again() -> None:
    assert backend() == backend()


def test_connections_cut_while_nobody_used_them_are_replaced_and_nobody_notices() -> None:
    first = backend()

    with connect(autocommit=True) as outside:
        outside.execute("SELECT pg_terminate_backend(%s, 5000)", [first])

    assert backend() != first
    assert connections["default"].pool.get_stats()["connections_lost"] >= 1

"""The pool gives out connections that work, however the request before left them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from django.conf import settings as site
from django.db import OperationalError, connection, transaction

from lcmsite.connections import connect
from tests.factories import a_conversation
from tests.lcmsite.callers import Api, an_api_key
from tests.statements import counted_statements

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


def idle_backends() -> list[int]:
    """Those of a few connections that were in use at once, and now lie in the pool."""
    connection.close()
    pool = connection.pool
    pool.open()
    several = [pool.getconn() for _ in range(3)]
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


def test_an_append_on_a_pooled_connection_is_its_check_and_one_statement(clock, settings):
    # The limit is counted in the database once in a while.
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, rate_limit=0)
    api, conversation = Api(an_api_key(None, "write")), a_conversation()
    path = f"conversations/{conversation.conversation_id}/messages/"
    api.post(path, {"messages": [{"role": "user", "content": "first"}]})
    connection.close()

    with counted_statements() as sent:
        reply = api.post(path, {"messages": [{"role": "user", "content": "second"}]})

    assert reply.status == 201
    assert [statement for statement in sent if statement] == [sent[-1]]
    assert len(sent) <= 2

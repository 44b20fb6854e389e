"""A block of reads leaves Django's connection as Django's own block does, whatever happens in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import psycopg
import pytest
from django.db import DataError, OperationalError, ProgrammingError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from conversations.models import Conversation
from conversations.reading import rows, snapshot
from tests.factories import a_conversation

pytestmark = pytest.mark.usefixtures("committed_db")

Block = Callable[[], AbstractContextManager[None]]


def the_state() -> dict[str, Any]:
    """Of Django's connection, and of the driver's under it."""
    ours = {
        name: len(value) if isinstance(value, list) else value for name, value in vars(connections["default"]).items()
    }
    # Each savepoint has a number of its own.
    del ours["savepoint_state"]
    driver = connection.connection
    return ours | {"autocommits": driver.autocommit, "transaction": driver.info.transaction_status}


def the_states(block: Block, within: Callable[[], object] = lambda: rows("SELECT 1")) -> list[dict[str, Any]]:
    """In the block, and behind it."""
    states = []
    with block():
        within()
        states.append(the_state())
    return [*states, the_state()]


def an_error_that_is_swallowed() -> None:
    with pytest.raises(DataError):
        rows("SELECT 1 / 0")


def an_error_that_django_does_not_see() -> None:
    with pytest.raises(psycopg.DataError):
        connection.connection.execute("SELECT 1 / 0")


def one_of_a_block_within() -> None:
    with pytest.raises(ProgrammingError), transaction.atomic():
        rows("SELECT of_nothing")
    assert rows("SELECT 1") == [(1,)]


def cut() -> None:
    (process,) = rows("SELECT pg_backend_pid()")
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", process)


@pytest.mark.parametrize(
    "within",
    [
        lambda: rows("SELECT 1"),
        lambda: rows("SELECT set_config('lcm.a_name', 'a value', true)"),
        an_error_that_is_swallowed,
        an_error_that_django_does_not_see,
        one_of_a_block_within,
    ],
)
def test_the_connection_is_left_in_the_state_in_which_django_leaves_it(within):
    connection.ensure_connection()
    before = the_state()

    ours = the_states(snapshot, within)
    expected = the_states(transaction.atomic, within)

    assert ours == expected
    assert ours[1] == before
    assert rows("SELECT 1") == [(1,)]


def test_behind_an_error_too_the_connection_is_as_it_was():
    connection.ensure_connection()
    before = the_state()

    with pytest.raises(DataError), snapshot():
        rows("SELECT 1 / 0")
    with snapshot():
        pass

    assert the_state() == before


def test_what_the_last_block_left_behind_is_of_no_concern_to_the_next():
    connection.needs_rollback, connection.commit_on_exit = True, False

    with snapshot():
        assert rows("SELECT 1") == [(1,)]
        assert (connection.needs_rollback, connection.commit_on_exit) == (False, True)


def test_what_waits_for_the_end_is_done_then():
    done = []

    with snapshot():
        transaction.on_commit(lambda: done.append(connection.in_atomic_block))
        assert done == []

    assert done == [False]
    with snapshot():
        pass
    assert done == [False]


def test_whoever_counts_queries_counts_its_ends_too():
    def the_ends(block: Block) -> list[str]:
        with CaptureQueriesContext(connection) as seen, block():
            pass
        return [each["sql"] for each in seen.captured_queries]

    assert the_ends(snapshot) == the_ends(transaction.atomic) != []


def test_whoever_begins_to_count_within_breaks_nothing():
    with snapshot():
        connection.force_debug_cursor = True
    connection.force_debug_cursor = False

    assert rows("SELECT current_setting('transaction_read_only')") == [("off",)]


def test_a_connection_may_be_closed_within_and_the_next_block_has_another():
    with snapshot():
        rows("SELECT 1")
        connection.close()

    with snapshot():
        assert rows("SELECT 1") == [(1,)]


@pytest.mark.parametrize("is_noticed", [False, True])
def test_of_a_connection_that_is_cut_before_the_end_the_end_tells_and_the_next_block_has_another(is_noticed):
    with pytest.raises(OperationalError), snapshot():
        cut()
        if is_noticed:
            with pytest.raises(psycopg.OperationalError):
                connection.connection.execute("SELECT 1")

    with snapshot():
        assert rows("SELECT 1") == [(1,)]
    assert not connection.in_atomic_block
    assert connection.get_autocommit()


def test_what_is_read_bit_by_bit_is_not_kept_by_the_server_beyond_the_block():
    a_conversation("a message")

    with snapshot():
        bit_by_bit: Iterator[Conversation] = Conversation.objects.iterator(chunk_size=1)
        next(bit_by_bit)
        assert rows("SELECT DISTINCT is_holdable FROM pg_cursors") == [(False,)]


def test_where_somebody_else_ends_transactions_the_reads_are_in_theirs():
    connection.set_autocommit(False)
    try:
        rows("SELECT set_config('lcm.a_name', 'a value', true)")
        with snapshot():
            assert rows("SELECT current_setting('lcm.a_name')") == [("a value",)]
        assert rows("SELECT current_setting('lcm.a_name')") == [("a value",)]
    finally:
        connection.rollback()
        connection.set_autocommit(True)

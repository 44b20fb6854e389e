"""A block of reads leaves Django's connection as Django's own block does, whatever happens in it."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from threading import Barrier
from typing import Any

import psycopg
import pytest
from django.db import DataError, OperationalError, ProgrammingError, connection, connections, transaction
from django.db.models.expressions import RawSQL
from django.test.utils import CaptureQueriesContext

from conversations import reading_block
from conversations.fast.prepared import prepared
from conversations.models import Conversation
from conversations.sql import rows, rows_as_planned, snapshot
from tests.factories import a_conversation

pytestmark = pytest.mark.usefixtures("committed_db")

Block = Callable[[], AbstractContextManager[object]]
_PROCESS = "SELECT pg_backend_pid()"


def the_state() -> dict[str, Any]:
    """Of Django's connection, and of the driver's under it."""
    ours = {
        name: len(value) if isinstance(value, list) else value for name, value in vars(connections["default"]).items()
    }
    # Each savepoint has a number of its own, and each cursor that reads bit by bit.
    del ours["savepoint_state"], ours["_named_cursor_idx"]
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


def from_outside(statement: str, *values: object) -> Any:
    with psycopg.connect(**connection.get_connection_params()) as other:
        return other.execute(statement, values).fetchone()[0]


def cut(process: int | None = None) -> None:
    from_outside("SELECT pg_terminate_backend(%s, 5000)", process or the_process())


def the_process() -> int:
    """What answers at the server; known to the driver, who asks nobody."""
    connection.ensure_connection()
    return connection.connection.info.backend_pid


def what_it_does(process: int) -> str:
    return from_outside("SELECT state FROM pg_stat_activity WHERE pid = %s", process)


def until_it_has_answered() -> None:
    assert select.select([connection.connection], [], [], 10)[0]


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


_ISOLATION = "SELECT current_setting('transaction_isolation')"


def by_djangos_cursor() -> object:
    with connection.cursor() as cursor:
        cursor.execute(_ISOLATION)
        return cursor.fetchone()[0]


def by_the_orm() -> object:
    return Conversation.objects.values_list(RawSQL("current_setting('transaction_isolation')", ())).first()[0]


def bit_by_bit() -> object:
    with connection.chunked_cursor() as cursor:
        cursor.execute(_ISOLATION)
        return cursor.fetchone()[0]


def in_a_block_within() -> object:
    with transaction.atomic():
        return rows(_ISOLATION)[0][0]


def as_a_copy() -> object:
    with connection.cursor() as cursor, cursor.copy(f"COPY ({_ISOLATION}) TO STDOUT") as copied:
        return b"".join(map(bytes, copied)).decode().strip()


WAYS_TO_READ = [
    lambda: rows(_ISOLATION)[0][0],
    lambda: rows_as_planned(_ISOLATION)[0][0],
    lambda: prepared(_ISOLATION)["current_setting"],
    by_djangos_cursor,
    by_the_orm,
    bit_by_bit,
    in_a_block_within,
    as_a_copy,
    lambda: connection.connection.execute(_ISOLATION).fetchone()[0],
]


@pytest.mark.parametrize("read", WAYS_TO_READ)
def test_whoever_reads_first_reads_in_the_transaction(read):
    a_conversation("a message")

    with snapshot():
        assert read() == "repeatable read"


def test_so_does_a_cursor_of_before():
    with connection.cursor() as cursor, connection.connection.cursor() as of_the_driver:
        for each in (cursor, of_the_driver):
            each.execute("SELECT 1")
            with snapshot():
                each.execute(_ISOLATION)
                assert each.fetchone()[0] == "repeatable read"


def test_the_server_begins_while_the_first_statement_is_made_ready_and_ends_while_the_answer_is():
    with snapshot() as nothing_more_is_read:
        until_it_has_answered()
        assert what_it_does(the_process()) == "idle in transaction"
        rows("SELECT 1")
        nothing_more_is_read()
        until_it_has_answered()
        assert what_it_does(the_process()) == "idle"


def nothing() -> None:
    pass


@pytest.mark.parametrize(
    "within", [nothing, lambda: rows("SELECT 1"), an_error_that_is_swallowed, an_error_that_django_does_not_see]
)
@pytest.mark.parametrize("times", [0, 1, 2])
def test_to_say_that_nothing_more_is_read_leaves_the_connection_as_the_end_does(within, times):
    @contextmanager
    def block() -> Iterator[None]:
        with snapshot() as nothing_more_is_read:
            yield
            for _ in range(times):
                nothing_more_is_read()

    process, before = the_process(), the_state()

    ours = the_states(block, within)[-1]
    expected = the_states(transaction.atomic, within)[-1]

    assert ours == expected == before
    assert rows(_PROCESS) == [(process,)]


@pytest.mark.parametrize("read", WAYS_TO_READ)
def test_whoever_reads_after_all_is_told_so_and_the_connection_is_left_as_it_was(read):
    a_conversation("a message")
    process, before = the_process(), the_state()

    with pytest.raises(RuntimeError, match="Nothing more"), snapshot() as nothing_more_is_read:
        rows("SELECT 1")
        nothing_more_is_read()
        read()

    assert the_state() == before
    assert rows(_PROCESS) == [(process,)]


@pytest.mark.parametrize("is_said", [False, True])
@pytest.mark.parametrize("is_read", [False, True])
def test_an_error_of_the_client_s_own_costs_no_connection(is_read, is_said):
    process, before = the_process(), the_state()

    with pytest.raises(LookupError), snapshot() as nothing_more_is_read:
        if is_read:
            rows("SELECT 1")
        if is_said:
            nothing_more_is_read()
        raise LookupError

    assert the_state() == before
    assert rows(_PROCESS) == [(process,)]


@pytest.mark.parametrize("is_said", [False, True])
def test_nor_does_a_generator_that_is_left_early(is_said):
    def numbers() -> Iterator[int]:
        with snapshot() as nothing_more_is_read:
            if is_said:
                nothing_more_is_read()
            yield 1
            yield 2

    process, before = the_process(), the_state()

    left = numbers()
    next(left)
    left.close()

    assert the_state() == before
    assert rows(_PROCESS) == [(process,)]


def test_what_is_to_be_done_at_the_end_is_done_whenever_that_was_said():
    done = []

    with snapshot() as nothing_more_is_read:
        rows("SELECT 1")
        nothing_more_is_read()
        transaction.on_commit(lambda: done.append(connection.in_atomic_block))
        assert done == []

    assert done == [False]


def test_while_something_waits_for_the_end_the_end_waits_for_the_block():
    with snapshot() as nothing_more_is_read:
        transaction.on_commit(nothing)
        nothing_more_is_read()
        assert rows(_ISOLATION) == [("repeatable read",)]


def test_in_a_transaction_of_somebody_else_nothing_ends():
    for outer in (transaction.atomic, snapshot):
        with outer():
            with snapshot() as nothing_more_is_read:
                nothing_more_is_read()
                rows("SELECT set_config('lcm.a_name', 'a value', true)")
            assert rows("SELECT current_setting('lcm.a_name')") == [("a value",)]


@pytest.mark.parametrize("read", [nothing, lambda: rows("SELECT 1"), by_djangos_cursor, in_a_block_within])
@pytest.mark.parametrize("is_cut_before", [False, True])
def test_of_a_connection_that_is_cut_before_anything_is_read_the_first_to_need_it_tells(read, is_cut_before):
    def states(block: Block) -> dict[str, Any]:
        # To the pool, every connection in it is a good one.
        connection.close()
        process = the_process()
        if is_cut_before:
            cut(process)
        with pytest.raises(OperationalError), block():
            if not is_cut_before:
                cut(process)
            read()
        # Which other connection it has got from the pool is of no concern.
        return {name: value for name, value in the_state().items() if name not in ("connection", "close_at")}

    ours = states(snapshot)

    if read is not nothing:
        # Django begins no transaction in which nothing is read.
        assert ours == states(transaction.atomic)
    with snapshot():
        assert rows("SELECT 1") == [(1,)]
    assert not connection.in_atomic_block


def test_where_the_server_begins_no_transaction_nothing_is_read(monkeypatch):
    monkeypatch.setattr(reading_block, "_BEGIN", b"BEGIN ISOLATION LEVEL NONE WHATEVER")
    process, before = the_process(), the_state()

    with pytest.raises(OperationalError, match="syntax error"), snapshot():
        rows("SELECT 1")

    assert the_state() == before
    assert rows(_PROCESS) == [(process,)]


def test_of_a_connection_that_is_cut_before_it_is_said_that_nothing_more_is_read_that_tells():
    with pytest.raises(OperationalError), snapshot() as nothing_more_is_read:
        cut()
        nothing_more_is_read()

    with snapshot():
        assert rows("SELECT 1") == [(1,)]
    assert connection.get_autocommit()


def test_what_was_read_is_good_if_the_connection_is_cut_behind_the_end_of_its_transaction():
    with snapshot() as nothing_more_is_read:
        (read,) = rows("SELECT 1")
        nothing_more_is_read()
        until_it_has_answered()
        cut()

    assert read == (1,)
    connection.close()
    with snapshot():
        assert rows("SELECT 1") == [(1,)]


@pytest.mark.parametrize("is_said", [False, True])
def test_one_that_is_closed_while_an_answer_is_awaited_is_given_to_nobody(is_said):
    for _ in range(10):
        with snapshot() as nothing_more_is_read:
            if is_said:
                rows("SELECT 1")
                nothing_more_is_read()
            connection.close()

        assert rows("SELECT 1") == [(1,)]


def test_blocks_of_several_threads_know_nothing_of_each_other():
    together = Barrier(3)

    def process_told() -> bool:
        try:
            with snapshot() as nothing_more_is_read:
                together.wait(10)
                told = rows(_PROCESS)
                together.wait(10)
                nothing_more_is_read()
                together.wait(10)
            return told == rows(_PROCESS) == [(the_process(),)]
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as threads:
        assert [each.result() for each in [threads.submit(process_told) for _ in range(3)]] == [True] * 3

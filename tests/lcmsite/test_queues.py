"""The queues of background work, in the database and in Redis."""

import threading
import time
from collections.abc import Iterator

import pytest
from django.db import connection
from django_huey import get_queue
from huey.api import Huey
from huey.storage import PostgresStorage

from lcmsite.queues import QUEUES, queue_settings
from tests.lcmsite.operating import a_queue


@pytest.fixture(params=["database", "redis"])
def queue(request: pytest.FixtureRequest) -> Iterator[Huey]:
    if request.param == "redis":
        url = request.getfixturevalue("redis_url")
    else:
        request.getfixturevalue("db")
        url = ""
    made = a_queue("compaction", redis_url=url)
    made.storage.flush_all()
    yield made
    made.storage.flush_all()
    made.storage.close()


def test_a_task_is_taken_once_and_run_with_its_arguments(queue):
    done = []
    task = queue.task()(lambda *, number: done.append(number))
    task(number=7)

    taken, none_left = queue.dequeue(), queue.storage.queue_size()
    queue.execute(taken)

    assert done == [7]
    assert none_left == 0


def test_a_waiting_worker_is_woken_by_a_new_task(queue):
    task = queue.task()(lambda: None)
    queue.storage.read_timeout = 30
    taken = []
    waiting = threading.Thread(target=lambda: taken.append(queue.dequeue()))
    waiting.start()
    time.sleep(0.3)

    task()
    waiting.join(timeout=15)

    assert not waiting.is_alive()
    assert len(taken) == 1


def test_tasks_of_one_queue_are_not_seen_by_the_other(db):
    ours, theirs = (a_queue(name, redis_url="") for name in QUEUES)
    ours.task()(lambda: None)()

    sizes = ours.storage.queue_size(), theirs.storage.queue_size()

    ours.storage.flush_all()
    for made in (ours, theirs):
        made.storage.close()
    assert sizes == (1, 0)


def test_the_site_has_both_queues_and_runs_no_task_in_a_request():
    for name in QUEUES:
        queue = get_queue(name)

        assert queue.immediate is False
        assert queue.results is False


def test_what_is_due_periodically_is_put_into_exactly_one_queue():
    queues = queue_settings(redis_url="", threads=1)["queues"]

    assert [name for name, options in queues.items() if options["consumer"]["periodic"]] == ["maintenance"]
    assert {options["consumer"]["graceful_signal"] for options in queues.values()} == {"TERM"}


@pytest.mark.django_db
def test_the_migration_makes_the_tables_that_the_installed_huey_makes():
    ours = _columns_and_indexes()

    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA as_huey_does; SET LOCAL search_path TO as_huey_does")
        for statement in PostgresStorage("any", create_tables=False).ddl:
            cursor.execute(statement)
    theirs = _columns_and_indexes("as_huey_does")

    assert ours
    assert ours == theirs


def _columns_and_indexes(schema: str = "public") -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name, data_type, is_nullable, replace(column_default, %s, '')"
            " FROM information_schema.columns WHERE table_schema = %s AND table_name LIKE 'huey%%'"
            " UNION ALL SELECT tablename, replace(indexdef, %s, ''), '', '', ''"
            " FROM pg_indexes WHERE schemaname = %s AND tablename LIKE 'huey%%' ORDER BY 1, 2",
            [f"{schema}.", schema, f"{schema}.", schema],
        )
        return cursor.fetchall()

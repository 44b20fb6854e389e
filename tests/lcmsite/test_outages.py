"""What a worker's log says while the server of its queues is away: that it is, once, and that it is back, once."""

import json
import logging
import signal
import threading
import time
from dataclasses import replace

import psycopg
import pytest
import redis
from django.db import OperationalError, connection, transaction

from conversations.errors import Unavailable
from lcmsite.ops import outages
from lcmsite.ops.outages import is_outage
from lcmsite.queues import QUEUES
from tests.flows.processes import constants
from tests.lcmsite.operating import (
    EmbeddedDatabase,
    Site,
    a_key_in,
    end,
    eventually,
    process_of,
    processes_of,
    until_ready,
)


@pytest.mark.thorough
def test_a_killed_database_is_two_lines_in_each_workers_log(up, fresh_dir):
    # Nothing is in it and nothing falls due, whatever the hour: no worker writes what it could not tell the queue of.
    running = up("--no-web", "--verbose", LCM_DATA_DIR=str(fresh_dir), **constants(full_scan_hour=-1))
    until_ready(running)
    lines: list[str] = []
    threading.Thread(target=lambda: [lines.append(line) for line in running.stderr], daemon=True).start()
    eventually(lambda: _listening(fresh_dir) == {"compaction", "maintenance"})
    keeper = process_of(fresh_dir, ".keeper")
    # It would have a new server there before anybody had noticed.
    keeper.suspend()

    process_of(fresh_dir, "postgres -D").kill()
    eventually(lambda: _events(lines).count("queue_unavailable") == 2)
    # As long as it takes to try again a few times.
    time.sleep(3)
    keeper.resume()
    eventually(lambda: _events(lines).count("queue_answers_again") == 2, seconds=60)

    running.send_signal(signal.SIGTERM)
    running.wait(timeout=60)
    of_queues = [event for event in _events(lines) if event.startswith("queue_")]
    assert sorted(of_queues) == ["queue_answers_again"] * 2 + ["queue_unavailable"] * 2
    assert processes_of(fresh_dir) == []


@pytest.mark.thorough
@pytest.mark.parametrize("outage", ["kill", "suspend"])
def test_a_site_without_its_redis_stores_messages_and_says_so(up, data_dir, port, redis, outage):
    url, server = redis
    # Every append asks for a compaction, and every third request for the count that the processes share.
    running = up(LCM_REDIS_URL=url, LCM_RATE_LIMIT="300", LCM_MODEL_TOKEN_BUDGET="1000")
    until_ready(running)
    site = Site(port, a_key_in(data_dir))
    conversation_id = site.post("conversations/", {"session_id": outage})["conversation_id"]

    getattr(server, outage)()
    began = time.monotonic()
    for _ in range(30):
        messages = [{"role": "user", "content": "hello " * 50}] * 70
        site.post(f"conversations/{conversation_id}/messages/", {"messages": messages})

    took = time.monotonic() - began
    assert json.loads(site.text("readyz"))["warnings"] == ["Redis, where the queues are, cannot be reached"]
    end(running)
    # A count and two attempts at a wake-up, once in ten seconds; with one for each append, it would take two minutes.
    assert took < 60


def _listening(data_dir):
    """The queues that somebody waits for."""
    listening = EmbeddedDatabase(data_dir).one(
        "SELECT coalesce(string_agg(query, ' '), '') FROM pg_stat_activity WHERE query LIKE 'listen %'"
    )
    return {queue for queue in QUEUES if queue in listening}


def _events(lines):
    return [json.loads(line)["event"] for line in lines]


def test_each_reason_of_an_outage_is_one_line(monkeypatch, settings, caplog):
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, pool_timeout_seconds=-1)
    monkeypatch.setattr(outages, "SECONDS_BETWEEN_TRIES", 0)
    answers = iter([Unavailable("login refused"), Unavailable("login refused"), Unavailable("away"), None])

    def answer(**_: object) -> None:
        if (refusal := next(answers)) is not None:
            raise refusal

    monkeypatch.setattr("lcmsite.connections.require_servers", answer)
    ended = psycopg.errors.AdminShutdown("terminating connection due to administrator command")
    record = logging.LogRecord("huey", logging.ERROR, "", 0, "", (), (type(ended), ended, None))

    assert not outages.OncePerOutage().filter(record)

    eventually(lambda: "queue_answers_again" in caplog.text)
    reasons = [line.msg["reason"] for line in caplog.records if line.msg["event"] == "server_unavailable"]
    assert reasons == ["login refused", "away"]


def test_a_refused_connection_is_an_outage():
    with pytest.raises(psycopg.OperationalError) as of_database:
        psycopg.connect("postgres://me@127.0.0.1:1/none")
    with pytest.raises(redis.ConnectionError) as of_redis:
        redis.Redis(port=1).ping()

    assert is_outage(of_database.value)
    assert is_outage(of_redis.value)
    assert not is_outage(ValueError())


@pytest.mark.django_db
def test_a_question_that_took_too_long_is_not_an_outage():
    with pytest.raises(OperationalError) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 1")
        cursor.execute("SELECT pg_sleep(5)")

    assert not is_outage(refused.value)

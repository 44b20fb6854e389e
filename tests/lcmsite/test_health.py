"""Health: what an operator's machinery is told."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections
from django.utils import timezone

from compaction.models import CompactionJob
from conversations.models import Conversation
from lcmsite.connections import connect, reason_of
from lcmsite.management.commands.up import Command
from lcmsite.ops.health import not_ready
from tests.factories import a_conversation
from tests.lcmsite.callers import lcm


def test_a_living_process_says_so_without_a_database(client):
    response = client.get("/healthz")

    assert response.status_code == 200
    assert response.json() == {"status": "alive"}


@pytest.mark.django_db
def test_a_migrated_site_is_ready(client):
    response = client.get("/readyz")

    assert response.json() == {"status": "ready", "missing": []}
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]


@pytest.mark.parametrize("minutes", [1, 10])
def test_a_job_that_nobody_takes_is_a_warning_and_no_reason_to_be_taken_out(client, committed_db, minutes):
    conversation = Conversation.objects.get(pk=a_conversation("hello").conversation_id)
    since = timezone.now() - timedelta(minutes=minutes)
    CompactionJob.objects.create(conversation=conversation, reason="manual", requested_at=since, run_after=since)

    response = client.get("/readyz")

    assert response.status_code == 200
    expected = ["a job of compaction has been waiting for 10 minutes: is there a worker?"] if minutes == 10 else []
    assert response.json().get("warnings", []) == expected


@pytest.mark.django_db
def test_a_migration_that_is_not_applied_is_named(client):
    with connect(autocommit=True) as committed:
        committed.execute("UPDATE django_migrations SET app = 'other' WHERE app = 'lcmsite' AND name = '0001_initial'")
        try:
            response = client.get("/readyz")
        finally:
            committed.execute("UPDATE django_migrations SET app = 'lcmsite' WHERE app = 'other'")

    assert response.status_code == 503
    assert response.json()["missing"] == ["migration lcmsite.0001_initial is not applied"]


@pytest.fixture
def newer_database(db):
    with connect(autocommit=True) as committed:
        committed.execute(
            "INSERT INTO django_migrations (app, name, applied)"
            " VALUES ('lcmsite', '9999_later', now()), ('formerly_installed', '0001_initial', now())"
        )
        yield
        committed.execute("DELETE FROM django_migrations WHERE name = '9999_later' OR app = 'formerly_installed'")


def test_a_migration_that_the_code_lacks_is_named(client, newer_database):
    response = client.get("/readyz")

    assert response.status_code == 503
    assert response.json()["missing"] == ["migration lcmsite.9999_later is newer than this code"]


@pytest.mark.parametrize("begin", [Command()._migrate, partial(call_command, "migrate")], ids=["up", "migrate"])
def test_code_that_is_older_than_the_database_is_refused(newer_database, begin):
    with pytest.raises(CommandError, match=r"newer than this code: .* lacks lcmsite\.9999_later\."):
        begin()


@pytest.mark.django_db
@pytest.mark.parametrize("is_embedded", [True, False])
def test_a_database_without_writes_is_not_ready_unless_it_is_the_embedded_one(monkeypatch, settings, is_embedded):
    settings.EMBEDDED_DATABASE = is_embedded
    read_only = partial(connect, options="-c default_transaction_read_only=on")
    monkeypatch.setattr("lcmsite.ops.health.connect", read_only)

    expected = ["the database accepts no writes: it is a standby, or was made read-only"]
    assert not_ready() == ([] if is_embedded else expected)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('connection failed: FATAL:  password authentication failed for user "lcm"', " (login refused)"),
        ('FATAL:  no pg_hba.conf entry for host "192.0.2.7", user "lcm"', " (login refused)"),
        ("FATAL:  sorry, too many clients already", " (too many connections)"),
        ("FATAL:  remaining connection slots are reserved for roles", " (too many connections)"),
        ("FATAL:  the database system is starting up", " (starting or stopping)"),
        ('FATAL:  database "lcm" does not exist', " (unknown database)"),
        ("failed to resolve host 'db.invalid': Name or service not known", " (unknown host name)"),
        ("connection timeout expired", " (timeout)"),
        ("connection to server at 10.0.0.1 failed: session is read-only", " (no writes accepted)"),
        ("something else about user lcm", ""),
    ],
)
def test_the_reason_of_a_failed_connection_is_short_and_names_no_address(text, reason):
    assert reason_of(psycopg.OperationalError(text)) == reason


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "said"), [("PORT", "cannot be reached (connection refused)"), ("NAME", "is empty")])
def test_a_database_that_is_away_or_empty_is_told(monkeypatch, name, said):
    other = {"PORT": "1", "NAME": "postgres"}
    monkeypatch.setitem(connections["default"].settings_dict, name, other[name])

    [missing] = not_ready()

    assert said in missing


@pytest.mark.django_db
def test_the_command_line_shows_the_same_with_an_exit_status(monkeypatch):
    ready = lcm("--json", "health")
    monkeypatch.setitem(connections["default"].settings_dict, "PORT", "1")
    away = lcm("--json", "health")

    assert (ready.exit_code, ready.json) == (0, {"status": "ready", "missing": [], "warnings": []})
    assert (away.exit_code, away.json["missing"]) == (1, ["the database cannot be reached (connection refused)"])


@pytest.mark.django_db
def test_a_redis_that_is_away_is_a_warning_as_appends_continue(client, settings, tmp_path):
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, redis_url=f"unix://{tmp_path}/no.sock")

    response = client.get("/readyz")

    assert response.status_code == 200
    assert response.json()["warnings"] == ["Redis, where the queues are, cannot be reached"]

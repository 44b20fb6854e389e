"""Health: what an operator's machinery is told."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from compaction.models import CompactionJob
from conversations.models import Conversation
from lcmsite.connections import connect
from lcmsite.ops.health import not_ready
from tests.factories import a_conversation


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
        committed.execute("UPDATE django_migrations SET name = 'other' WHERE app = 'lcmsite' AND name = '0001_initial'")
        try:
            response = client.get("/readyz")
        finally:
            committed.execute("UPDATE django_migrations SET name = '0001_initial' WHERE name = 'other'")

    assert response.status_code == 503
    assert response.json()["missing"] == ["migration lcmsite.0001_initial is not applied"]


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "said"), [("PORT", "cannot be reached"), ("NAME", "is empty")])
def test_a_database_that_is_away_or_empty_is_told(monkeypatch, name, said):
    other = {"PORT": "1", "NAME": "postgres"}
    monkeypatch.setitem(connections["default"].settings_dict, name, other[name])

    [missing] = not_ready()

    assert said in missing


@pytest.mark.django_db
def test_a_redis_that_is_away_is_a_warning_as_appends_continue(client, settings, tmp_path):
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, redis_url=f"unix://{tmp_path}/no.sock")

    response = client.get("/readyz")

    assert response.status_code == 200
    assert response.json()["warnings"] == ["Redis, where the queues are, cannot be reached"]

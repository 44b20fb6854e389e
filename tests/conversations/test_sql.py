"""Named statements, prepared statements on Django's connection, and snapshots."""

from __future__ import annotations

import psycopg
import pytest
from django.db import DataError, OperationalError, connection, transaction

from conversations import sql
from conversations.models import Workspace
from conversations.sql import GENERIC_PLANS, rows, snapshot, texts
from lcmsite.ops.outages import is_outage
from tests.factories import a_conversation, say

STATE = "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"
PLAN_MODE = "SELECT current_setting('plan_cache_mode')"


@pytest.fixture
def a_room(tmp_path, monkeypatch):
    """Writes a file of statements where a room has them."""
    monkeypatch.setattr(sql, "ROOMS", tmp_path)
    (tmp_path / "room" / "sql").mkdir(parents=True)
    sql.load.cache_clear()
    yield lambda text: (tmp_path / "room" / "sql" / "some.sql").write_text(text)
    sql.load.cache_clear()


@pytest.mark.parametrize("text", ["SELECT 1", "SELECT 1\n-- name: a\nSELECT 2", "-- name: a\n-- name: b\nSELECT 1",
                                  "-- name: a\nSELECT 1\n-- name: a\nSELECT 2"])  # fmt: skip
def test_a_file_with_a_statement_without_a_name_of_its_own_is_refused(a_room, text):
    a_room(text)

    with pytest.raises(ValueError, match="name"):
        sql.load("room/some.sql")


@pytest.mark.django_db
@pytest.mark.parametrize("given", [[], [""], ["NULL", "a,b", "{}", 'a "b" \\ c\\', " ", "数据库\n\t"]])
def test_texts_reach_the_database_as_they_are(given):
    assert rows("SELECT %s::text[]", [texts(given)]) == [(given,)]


def test_a_block_whose_error_was_caught_is_not_committed(committed_db):
    with transaction.atomic():
        Workspace.objects.create(name="half of the work")
        with pytest.raises(DataError):
            rows("SELECT 1 / 0")

    assert not Workspace.objects.exists()


def test_a_snapshot_sees_one_moment_and_writes_nothing(committed_db):
    number = a_conversation("one").conversation_id

    with snapshot():
        before = rows("SELECT count(*) FROM messages")
        with psycopg.connect(**connection.get_connection_params(), autocommit=True) as other:
            other.execute("INSERT INTO workspaces (name) VALUES ('another')")
        assert rows("SELECT count(*) FROM workspaces WHERE name = 'another'") == [(0,)]
        assert rows(STATE) == [("repeatable read", "on")]
        assert rows("SELECT count(*) FROM messages") == before

    with pytest.raises(DataError), snapshot():
        rows("SELECT 1 / 0")
    assert rows(STATE) == [("read committed", "off")]
    say(number, "two")


def test_settings_are_for_one_snapshot_alone(committed_db):
    before = rows(PLAN_MODE)

    with snapshot(settings=GENERIC_PLANS):
        within = rows(PLAN_MODE)
    with transaction.atomic(), snapshot(settings=GENERIC_PLANS):
        inside_another = rows(PLAN_MODE)

    assert within == [("force_generic_plan",)]
    assert rows(PLAN_MODE) == inside_another == before


def test_a_snapshot_on_a_connection_that_was_cut_is_an_outage_and_the_next_has_another(committed_db):
    (cut,) = rows("SELECT pg_backend_pid()")
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", cut)

    with pytest.raises(OperationalError) as refused, snapshot():
        rows("SELECT 1")
    with snapshot():
        again = rows("SELECT pg_backend_pid()")

    assert is_outage(refused.value)
    assert again != [cut]

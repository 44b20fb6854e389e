"""Runs that an earlier version has recorded do not keep a database from being migrated."""

from __future__ import annotations

import psycopg
import pytest

from tests.conversations.test_migrations import manage, url  # noqa: F401

# Messages came in between the counter that these runs started from and the context that they read.
RUNS_OF_BEFORE = """
    INSERT INTO workspaces (name) VALUES ('old');
    INSERT INTO conversations (workspace_id, session_id) VALUES (1, 'old');
    INSERT INTO compaction_runs (
      run_id, conversation_id, reason, outcome, started_at, finished_at, tokens_before, tokens_after, leaf_summaries,
      condensed_summaries, details
    ) VALUES
      ('run_ended', 1, 'threshold', 'compacted', now(), now(), 100, -40, 2, 0, '{}'),
      ('run_open', 1, 'threshold', 'running', now(), NULL, 100, -40, 2, 0, '{}');
"""
FIGURES = "SELECT run_id, tokens_before, tokens_after FROM compaction_runs ORDER BY run_id"


@pytest.mark.thorough
def test_a_database_with_runs_that_do_not_add_up_is_migrated_and_open_runs_can_be_closed(url):  # noqa: F811
    manage(url, "migrate", "-v0")
    manage(url, "migrate", "compaction", "0005", "-v0")
    with psycopg.connect(url) as database:
        database.execute(RUNS_OF_BEFORE)

    manage(url, "migrate", "-v0")

    with psycopg.connect(url, autocommit=True) as database:
        assert database.execute(FIGURES).fetchall() == [("run_ended", 100, -40), ("run_open", 140, 0)]
        database.execute("UPDATE compaction_runs SET outcome = 'abandoned' WHERE run_id = 'run_open'")
        with pytest.raises(psycopg.errors.CheckViolation):
            database.execute("UPDATE compaction_runs SET tokens_after = -1 WHERE run_id = 'run_open'")

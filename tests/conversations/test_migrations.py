"""What was stored by an earlier version is there, and sealed, after the migrations."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

ROOT = Path(__file__).parents[2]
# As the store wrote before its chains sealed metadata and the time of recording; any hash stands for an old link.
STORED_BEFORE = """
    INSERT INTO workspaces (name) VALUES ('old');
    INSERT INTO conversations (
      workspace_id, session_id, next_seq, active_messages, active_tokens, total_tokens, chain_head
    ) VALUES (1, 'old', 4, 3, 15, 3, 'old');
    INSERT INTO messages (
      conversation_id, seq, role, content, token_count, token_counter, metadata, exact, content_hash, entry_hash,
      chain_hash, recorded_at
    )
    SELECT 1, seq, 'user', content, 1, 'o200k_base', metadata, exact, sha256(convert_to(content, 'UTF8')),
           sha256(convert_to(E'user\\n\\n', 'UTF8') || sha256(convert_to(content, 'UTF8'))), 'old',
           now() - seq * interval '1 second'
    FROM (VALUES (1, 'one', '{}'::jsonb, NULL::json),
                 (2, 'two', '{"by": "Ann"}', NULL),
                 (3, 'three', '{"cost": 1.5}', '{"metadata": {"cost": 1.50}}')) AS said(seq, content, metadata, exact);
    INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count)
    SELECT 1, seq, 'message', message_id, 5 FROM messages;
"""

# As the store wrote before records were sealed.
STORED_UNSEALED = """
    INSERT INTO workspaces (name) VALUES ('old');
    INSERT INTO conversations (
      workspace_id, session_id, next_seq, active_messages, active_tokens, total_tokens, updated_at
    ) VALUES (1, 'old', 3, 2, 10, 2, now());
    INSERT INTO messages (
      conversation_id, seq, role, content, token_count, token_counter, idempotency_key, content_hash, entry_hash,
      created_at, recorded_at, chain_hash
    )
    SELECT 1, seq, 'user', content, 1, 'o200k_base', 'key ' || seq, sha256(convert_to(content, 'UTF8')), entry_hash,
           now(), now(), lcm_chain('\\x', entry_hash, NULL, now(), now()) OVER (ORDER BY seq)
    FROM (VALUES (1, 'one'), (2, 'two')) AS said(seq, content)
    CROSS JOIN LATERAL (
      SELECT sha256(convert_to(E'user\\n\\n', 'UTF8') || sha256(convert_to(content, 'UTF8'))) AS entry_hash
    ) AS hashed;
    UPDATE conversations SET chain_head = (SELECT chain_hash FROM messages WHERE seq = 2);
    INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count)
    SELECT 1, seq, 'message', message_id, 5 FROM messages;
"""
APPEND_ONE_MORE = """
from conversations.store.conversations import ConversationStore
from conversations.types import NewMessage, Role
new = NewMessage(Role.USER, "three", idempotency_key="key 3", metadata={"b": 1, "a": 2})
ConversationStore.from_settings().append_messages(conversation_id=1, messages=[new])
"""


@pytest.fixture
def url(django_db_setup: None) -> Iterator[str]:
    """An empty database on the server of the tests."""
    server = settings.DATABASES["default"]
    name = f"lcm_migrated_{os.getpid()}"
    connection = psycopg.connect(
        host=server["HOST"], port=server["PORT"] or None, user=server["USER"], password=server["PASSWORD"] or None,
        dbname="postgres", autocommit=True,
    )  # fmt: skip
    with connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield psycopg.conninfo.make_conninfo(connection.info.dsn, dbname=name, password=server["PASSWORD"] or None)
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def manage(dsn: str, *words: str) -> str:
    given = psycopg.conninfo.conninfo_to_dict(dsn)
    host = str(given.get("host", "")).replace("/", "%2F")
    address = f"postgres://{given['user']}@{host}:{given.get('port', 5432)}/{given['dbname']}"
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *words],
        env={**os.environ, "LCM_DATABASE_URL": address, "DJANGO_SETTINGS_MODULE": "lcmsite.settings"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.thorough
def test_chains_of_an_earlier_version_are_sealed_anew(url):
    manage(url, "migrate", "conversations", "0003", "-v0")
    with psycopg.connect(url) as database:
        database.execute(STORED_BEFORE)

    manage(url, "migrate", "-v0")

    # Fails, as any verb does, with a status of its own if there is a finding.
    manage(url, "lcm", "check", "--workspace", "old")
    with psycopg.connect(url) as database:
        times = [row[0] for row in database.execute("SELECT recorded_at FROM messages ORDER BY seq").fetchall()]
        assert times == sorted(times)
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation):
            database.execute("UPDATE messages SET content = 'x'")


ACTS_BEFORE = """
    INSERT INTO workspaces (name) VALUES ('old');
    INSERT INTO audit_log (workspace_id, actor, act, target, detail)
    SELECT 1, 'Ann', 'set_retention', 'old', jsonb_build_object('days', ARRAY['30'], 'n', n)
    FROM generate_series(1, 5) n;
"""


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_acts_of_an_earlier_version_are_chained(url):
    manage(url, "migrate", "conversations", "0017", "-v0")
    with psycopg.connect(url) as database:
        database.execute(ACTS_BEFORE)

    manage(url, "migrate", "-v0")
    manage(url, "lcm", "key", "create", "new", "--workspace", "old")

    manage(url, "lcm", "check", "--workspace", "old")
    with psycopg.connect(url) as database:
        chained = database.execute("SELECT number, audit_id FROM audit_chain ORDER BY number").fetchall()
        acts = database.execute("SELECT audit_id FROM audit_log ORDER BY audit_id").fetchall()
        assert chained == [(number, audit_id) for number, (audit_id,) in enumerate(acts, start=1)]
        assert len(acts) == 6


@pytest.mark.thorough
def test_messages_from_before_records_were_sealed_keep_their_links_and_new_ones_follow(url):
    manage(url, "migrate", "conversations", "0017", "-v0")
    with psycopg.connect(url) as database:
        database.execute(STORED_UNSEALED)
        links = database.execute("SELECT chain_hash FROM messages ORDER BY seq").fetchall()

    manage(url, "migrate", "-v0")
    manage(url, "shell", "-c", APPEND_ONE_MORE)

    manage(url, "lcm", "check", "--workspace", "old")
    manage(url, "lcm", "ledger", "verify", "--live", "--workspace", "old")
    with psycopg.connect(url) as database:
        now = database.execute("SELECT chain_hash, record_hash IS NULL FROM messages ORDER BY seq").fetchall()
        assert [link for link, _ in now[:2]] == [link for (link,) in links]
        assert [is_unsealed for _, is_unsealed in now] == [True, True, False]

"""Every column has a declared protection, database and checker do what is declared, and seals show a change."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module

import pytest
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from compaction.hosts.host_service import HostCompaction
from conversations.models import Conversation, Summary
from conversations.run_sql import SealRows
from conversations.sql import rows
from integrity.column_protection import TABLES, Protection
from integrity.invariants import INVARIANTS
from lcmsite.access import keys
from tests.factories import a_conversation, a_workspace, say
from tests.integrity.breaking import a_compacted_conversation, breaking, checked
from tests.statements import execute

pytestmark = pytest.mark.django_db


def test_every_column_of_the_database_has_a_declared_protection():
    live = set(
        rows(
            "SELECT table_name::text, column_name::text FROM information_schema.columns"
            " WHERE table_schema = current_schema()"
        )
    )
    declared = {(table.name, column) for table in TABLES.values() for column in table.columns}
    whole = {table.name for table in TABLES.values() if not table.columns}

    assert {(table, column) for table, column in live - declared if table not in whole} == set(), (
        "decide in integrity/column_protection.toml what protects these"
    )
    assert whole <= {table for table, _ in live}
    assert declared - live == set(), "these are gone"


def test_every_column_is_found_by_an_invariant_that_exists_or_has_a_reason():
    undecided, named = [], {code for table in TABLES.values() for code in table.removal}
    for table in TABLES.values():
        assert table.removal or table.removal_note, table.name
        for name, column in table.columns.items():
            named |= {*column.found_by}
            is_operational = column.protection is Protection.OPERATIONAL
            if not (column.note or (column.found_by and not is_operational)):
                undecided.append(f"{table.name}.{name}")

    assert undecided == []
    assert named <= {invariant.code for invariant in INVARIANTS}


def test_the_triggers_seal_exactly_the_declared_columns():
    """A trigger fires on an update of these columns alone, so that counters cost nothing, and seals these."""
    found = rows(
        """
        SELECT t.tgrelid::regclass::text, string_to_array(encode(t.tgargs, 'escape'), '\\000'), (
                   SELECT array_agg(a.attname::text) FROM unnest(t.tgattr::int2[]) AS number
                   JOIN pg_attribute a ON a.attrelid = t.tgrelid AND a.attnum = number)
        FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE p.proname = 'lcm_seal_row'
        """
    )

    sealed = {table: set(arguments) - {""} for table, arguments, _ in found}
    firing = {table: set(columns) - {"row_seal"} for table, _, columns in found}
    declared = {table.name: set(table.sealed_columns) for table in TABLES.values() if table.row_seal}
    assert sealed == declared
    assert firing == declared


def test_what_an_ordinary_write_changes_is_sealed_again_and_no_seal_can_be_written():
    conversation = a_conversation("one", title="Harbour")
    Conversation.objects.update(title="Boats")
    say(conversation.conversation_id, "two")
    execute("UPDATE conversations SET row_seal = 'anything'")

    assert checked() == {}


def test_a_workspace_that_was_renamed_or_removed_past_the_triggers_is_found():
    workspace = a_workspace("harbour")
    conversation = a_conversation("one", workspace=workspace)

    breaking("UPDATE workspaces SET name = 'boats' WHERE workspace_id = %s", workspace.pk)
    assert checked() == {"site_rows_match_their_seals": [f"workspace_{workspace.pk}"]}

    breaking("DELETE FROM workspaces WHERE workspace_id = %s", workspace.pk)
    assert checked() == {"rows_belong_to_something": [f"conv_{conversation.conversation_id}"]}


def test_a_seal_does_not_depend_on_the_session_that_wrote_or_reads_it():
    conversation = a_conversation("one", "two")
    key = keys.issue(workspace_id=a_workspace().pk, name="agent", expires_at=timezone.now() + timedelta(days=1))
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL timezone = 'America/St_Johns'; SET LOCAL bytea_output = 'escape'")
        cursor.execute("SET LOCAL extra_float_digits = -5")
        cursor.execute(
            "UPDATE conversations SET title = 'x' WHERE conversation_id = %s", [conversation.conversation_id]
        )
        cursor.execute("UPDATE api_keys SET name = 'y' WHERE api_key_id = %s", [key.record.api_key_id])
        cursor.execute("SET LOCAL timezone = 'Asia/Kathmandu'; SET LOCAL bytea_output = 'hex'")
        cursor.execute("SET LOCAL extra_float_digits = 3")

    assert checked() == {}


ROOMS = ("conversations", "compaction", "integrity", "retrieval", "lcmsite")


def test_rows_that_are_there_already_are_sealed_by_the_migrations():
    conversation = a_compacted_conversation().id
    keys.issue(workspace_id=a_workspace().pk, name="agent")
    HostCompaction.from_settings().record_boundary(conversation_id=conversation, host_reference="first")
    operations = [
        operation
        for room, name in sorted(MigrationLoader(connection).disk_migrations)
        if room in ROOMS
        for operation in import_module(f"{room}.migrations.{name}").Migration.operations
        if isinstance(operation, SealRows)
    ]
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for operation in operations:
            cursor.execute(operation.reverse_sql)
            cursor.execute(operation.sql)

    assert {operation.table for operation in operations} == {table.name for table in TABLES.values() if table.row_seal}
    assert checked() == {}
    # The triggers that keep rows as they are stand again.
    with pytest.raises(DatabaseError):
        Summary.objects.update(model="another")

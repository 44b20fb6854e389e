"""One row past the ORM is the instance that the ORM would have made, and past a snapshot everything is as before."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection
from django.db.models import Model

from conversations.models import Conversation, LargeFile, Message, Summary
from conversations.scope import Scope
from conversations.sql import rows, snapshot
from conversations.types import NewMessage, Role
from lcmsite.ops.outages import is_outage
from tests.factories import a_conversation, a_store, a_workspace
from tests.summaries import a_summary_of


def values_of(row: Model) -> dict[str, Any]:
    return {name: value for name, value in vars(row).items() if name not in ("_state", "content_tsv")}


@pytest.mark.django_db
@pytest.mark.parametrize("is_narrow", [True, False])
def test_a_row_is_the_instance_that_the_orm_makes(is_narrow):
    store = a_store()
    number = a_conversation("hello").conversation_id
    store.configure_conversation(conversation_id=number, overrides={"max_depth": 3})
    message = store.create_message(
        conversation_id=number, message=NewMessage(Role.USER, "a\x00b", metadata={"b": [1.50], "a": None})
    )
    summary = a_summary_of(store, number, seqs=[1])
    LargeFile.objects.create(file_id="file_1", conversation_id=number, storage_uri="x", content_hash=b"\x00\x01")
    scope = Scope(a_workspace().pk if is_narrow else None)

    found: list[Model] = [
        scope.conversation(number),
        scope.message(message.message_id),
        scope.summary(summary.summary_id),
        scope.file("file_1"),
    ]

    expected = [kind._default_manager.get(pk=row.pk) for kind, row in
                zip((Conversation, Message, Summary, LargeFile), found, strict=True)]  # fmt: skip
    assert [values_of(row) for row in found] == [values_of(row) for row in expected]
    assert found == expected
    assert found[1].get_deferred_fields() == found[2].get_deferred_fields() == {"content_tsv"}


def test_after_a_snapshot_everything_is_written_as_ever(committed_db):
    number = a_conversation("one").conversation_id

    for _ in range(2):
        with snapshot():
            inside = rows("SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')")
        with pytest.raises(DatabaseError), snapshot():
            rows("SELECT 1 / 0")
    a_store().append_messages(conversation_id=number, messages=[NewMessage(Role.USER, "two")])

    assert inside == [("repeatable read", "on")]
    assert rows("SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')") == [
        ("read committed", "off")
    ]


def test_a_snapshot_on_a_connection_that_was_cut_is_an_outage_and_the_next_has_another(committed_db):
    with psycopg.connect(**connection.get_connection_params()) as other:
        (cut,) = rows("SELECT pg_backend_pid()")
        other.execute("SELECT pg_terminate_backend(%s, 5000)", cut)

    with pytest.raises(OperationalError) as refused, snapshot():
        rows("SELECT 1")
    with snapshot():
        again = rows("SELECT pg_backend_pid()")

    assert is_outage(refused.value)
    assert again != [cut]

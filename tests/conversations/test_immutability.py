"""What was recorded stays: the database refuses, whoever asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from conversations.audit import Act, AuditLog
from conversations.files.large_files import LargeFileService
from conversations.models import (
    AuditEntry,
    AuditHead,
    AuditLink,
    FileReference,
    JournalEntry,
    LargeFile,
    Message,
    MessagePart,
    Summary,
    SummaryMessage,
    SummaryParent,
)
from conversations.scope import Scope
from conversations.store.journal import Journal
from conversations.types import NewMessage, NewPart, PartType, Role
from tests.factories import a_conversation, a_store, say
from tests.statements import execute
from tests.summaries import a_new_summary, a_summary_of

RECORDS = [
    Message, MessagePart, Summary, SummaryMessage, SummaryParent, AuditEntry, AuditLink, AuditHead, LargeFile,
    FileReference, JournalEntry,
]  # fmt: skip
TABLES = [model._meta.db_table for model in RECORDS]
# A change of nothing, by a column of each table.
COLUMNS = (
    "author", "is_ignored", "quality", "ordinal", "ordinal", "target", "number", "chain_hash", "file_name", "field",
    "entry",
)  # fmt: skip
UPSERT = "INSERT INTO summary_messages SELECT * FROM summary_messages ON CONFLICT (summary_id, message_id) DO"
FORBIDDEN = [
    *(f"UPDATE {table} SET {column} = {column}" for table, column in zip(TABLES, COLUMNS, strict=True)),
    *(f"DELETE FROM {table}" for table in (*TABLES, "conversations", "workspaces")),
    *(f"TRUNCATE {table}" for table in TABLES),
    *(f"TRUNCATE {table} CASCADE" for table in (*TABLES, "conversations", "workspaces")),
    f"{UPSERT} UPDATE SET ordinal = 99",
    "UPDATE audit_head SET number = number - 1",
    "UPDATE audit_head SET chain_hash = 'x'",
]


@pytest.fixture(scope="module")
def conversation_id(module_rows: None, module_files: Path) -> int:
    """A conversation with something in every one of the tables."""
    conversation_id = a_conversation("one", "two", "three").conversation_id
    part = NewPart(PartType.TEXT, text_content="four")
    say(conversation_id, NewMessage(Role.ASSISTANT, parts=(part,)))
    file = LargeFileService.from_settings().store(conversation_id=conversation_id, content=b"x", file_name="a.txt")
    named = NewPart(PartType.FILE, file_url=file.file_id)
    say(conversation_id, NewMessage(Role.USER, parts=(named,)))
    leaves = [a_summary_of(a_store(), conversation_id, seqs=[seq]) for seq in (1, 2)]
    a_summary_of(a_store(), conversation_id, summaries=leaves)
    Journal().append_entries(conversation_id=conversation_id, entries=[{"uuid": "a"}])
    announce(conversation_id, "reset_endpoint")
    # As at a commit, so that what follows stands alone.
    connection.check_constraints()
    return conversation_id


def run(statement: str) -> None:
    execute(statement)


def announce(conversation_id: int, act: str) -> None:
    with transaction.atomic():
        AuditLog(Scope(actor="Ann")).record(Act(act), conversation_id=conversation_id)


def refused(statement: str) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        run(statement)


def everything() -> list[list[dict[str, object]]]:
    return [list(model.objects.order_by("pk").values()) for model in RECORDS]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("statement", FORBIDDEN)
def test_no_row_is_changed_or_taken_away_by_any_statement(conversation_id, statement):
    before = everything()

    with pytest.raises(DatabaseError, match=r"refused|cannot truncate|violates"), transaction.atomic():
        run(statement)

    assert all(before)
    assert everything() == before


def test_a_summary_of_nothing_cannot_be_committed(conversation_id):
    with pytest.raises(IntegrityError, match="links to no source"), transaction.atomic():
        a_store().insert_summary(summary=a_new_summary(conversation_id))
        connection.check_constraints()


ANNOUNCED = ["archive", "thaw", "erase", "restore"]
TEXTS = [
    "UPDATE messages SET content = '', metadata = '{}', exact = NULL, author = NULL",
    "UPDATE message_parts SET text_content = NULL, tool_output = NULL, metadata = NULL",
    "UPDATE summaries SET content = ''",
    "UPDATE large_files SET file_name = NULL, mime_type = NULL, exploration_summary = NULL,"
    " erased_by_id = (SELECT max(audit_id) FROM audit_log)",
    "UPDATE journal_entries SET entry = NULL, erased_by_id = (SELECT max(audit_id) FROM audit_log)",
]
SEALS = [
    "UPDATE messages SET content_hash = sha256('')",
    "UPDATE messages SET metadata_hash = sha256('')",
    "UPDATE messages SET record_hash = NULL",
    "UPDATE messages SET token_counter = 'x'",
    "UPDATE large_files SET storage_uri = 'x'",
    "UPDATE large_files SET byte_size = 2",
    "UPDATE large_files SET content_hash = NULL",
    "UPDATE large_files SET conversation_id = conversation_id + 1",
    "UPDATE large_files SET created_at = now() + interval '1 hour'",
    # Without the mark of an erasure.
    "UPDATE large_files SET file_name = NULL, mime_type = NULL, exploration_summary = NULL",
    "UPDATE large_files SET file_name = 'b.txt', erased_by_id = (SELECT max(audit_id) FROM audit_log)",
    "UPDATE file_references SET file_id = file_id",
    "UPDATE journal_entries SET entry = '{}', erased_by_id = (SELECT max(audit_id) FROM audit_log)",
    "UPDATE journal_entries SET entry = NULL",
    "UPDATE messages SET seq = seq + 10",
    "UPDATE messages SET recorded_at = now() + interval '1 hour'",
    "UPDATE messages SET role = 'system'",
    "UPDATE message_parts SET part_hash = sha256('')",
    "UPDATE message_parts SET ordinal = ordinal + 10",
    "UPDATE summaries SET first_seq = 1, last_seq = 4",
    "UPDATE summaries SET summary_hash = sha256('')",
    "UPDATE summaries SET level = 'aggressive'",
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("act", ANNOUNCED)
@pytest.mark.parametrize("statement", TEXTS)
def test_a_text_leaves_its_row_only_when_the_same_transaction_says_so(conversation_id, statement, act):
    refused(statement)

    announce(conversation_id, act)
    run(statement)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("statement", SEALS)
def test_what_identifies_and_seals_a_row_never_changes(conversation_id, statement):
    for act in ANNOUNCED:
        announce(conversation_id, act)

    refused(statement)


@pytest.mark.parametrize("statement", TEXTS)
def test_another_act_opens_nothing_and_one_upon_another_conversation_neither(conversation_id, statement):
    announce(conversation_id, "quarantine")
    announce(a_conversation("other").conversation_id, "erase")

    refused(statement)

"""A conversation with something of every sort went through a ledger: its rows, its files, and the next ledger of it."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.files.storage import default_storage

from compaction.history.models import SessionSummary, SessionSummaryMemory
from compaction.models import CompactionRun
from conversations.errors import Conflict
from conversations.files.large_files import LargeFileService
from conversations.models import AuditEntry, ContextItem, Conversation, LargeFile, Message, MessagePart, Summary
from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from tests.conversations.ledger import verifier
from tests.conversations.ledger.ledgers import (
    BOATS,
    another_database,
    exported,
    imported,
    objects_in,
    the_ledgers,
    through_a_ledger,
    verified,
)
from tests.factories import a_workspace
from tests.integrity.erasing import erased

# By table, the columns that an import cannot keep.
NOT_KEPT: dict[Any, set[str]] = {
    Conversation: {"conversation_id", "rest_until_seq", "workspace_id", "last_used_on", "project_id"},
    Message: {"conversation_id", "content_tsv"},
    MessagePart: {"part_id"},
    Summary: {"conversation_id", "content_tsv"},
    ContextItem: {"conversation_id", "created_at"},
    CompactionRun: {"conversation_id", "job_id"},
    LargeFile: {"conversation_id", "storage_uri"},
    SessionSummary: {"conversation_id", "workspace_id", "project_id", "content_tsv"},
    SessionSummaryMemory: set(),
}


def rows_of_conversation() -> dict[Any, list[dict[str, Any]]]:
    """All rows, as far as an import can keep them, with seqs in the place of ids of messages."""
    conversation_id = Conversation.objects.get(session_id="everything").pk
    seqs = dict(Message.objects.filter(conversation_id=conversation_id).values_list("pk", "seq"))
    found = {}
    for model, without in NOT_KEPT.items():
        owner = {MessagePart: "message__", SessionSummaryMemory: "summary__"}.get(model, "") + "conversation_id"
        rows = list(model.objects.filter(**{owner: conversation_id}).values())
        for row in rows:
            row |= {"message_id": seqs.get(row.get("message_id"))}
            for name in without:
                del row[name]
        found[model] = sorted(rows, key=repr)
    return found


def test_export_of_the_copy_is_byte_for_byte_the_same_and_so_is_every_row_and_file(conversation_id, tmp_path, settings):
    before = rows_of_conversation()
    ledger = exported(conversation_id)
    another_database()
    settings.MEDIA_ROOT = tmp_path / "another disk"

    [copy] = imported(ledger, tmp_path).conversations

    assert exported(copy.conversation_id) == ledger
    assert LargeFileService.from_settings().read(file_id=LargeFile.objects.get(file_name="boats.csv").file_id) == BOATS
    assert IntegrityChecker.from_settings().run().is_clean
    after = rows_of_conversation()
    assert [name for name in before if after[name] != before[name]] == []
    assert all(before.values())
    act = AuditEntry.objects.get(act="import_ledger")
    assert (act.actor, act.conversation_id) == ("operator", copy.conversation_id)
    assert act.detail == {"line_hash": objects_in(ledger)[-1]["line_hash"]}


def test_without_files_their_descriptions_come_along(conversation_id):
    ledger = b"".join(the_ledgers().lines(conversation_id=conversation_id, with_files=False))

    report = verified(ledger)

    assert report.is_clean and report.counts.files == 2
    assert b'"type":"bytes"' not in ledger
    verifier.verify(io.BytesIO(ledger))


def test_a_file_that_is_missing_in_the_storage_shows(conversation_id):
    default_storage.delete(LargeFile.objects.get(file_name="boats.csv").storage_uri)

    assert verified(exported(conversation_id)).by_code == {"file_missing": 1}
    assert the_ledgers().verify_live(conversation_id=conversation_id).by_code == {"file_missing": 1}


def test_cold_texts_read_as_if_they_were_hot(conversation_id, tmp_path):
    hot = exported(conversation_id)
    moved = Retention.from_settings(Scope(a_workspace().pk)).archive(conversation_id=conversation_id)
    assert moved.messages

    cold, again = through_a_ledger(tmp_path, conversation_id)

    assert cold == hot == again


def test_what_was_erased_is_a_tombstone_in_the_copy_too(conversation_id, tmp_path):
    scope = Scope(a_workspace().pk, actor="operator")
    erased(Erasures.from_settings(scope), conversation_id, from_seq=61, to_seq=66)

    ledger, again = through_a_ledger(tmp_path, conversation_id)

    assert again == ledger
    tombstones = [each for each in objects_in(ledger) if each["type"] == "message" and each["erased"]]
    assert [each["seq"] for each in tombstones] == [61, 62, 63, 64, 65, 66]
    assert {(each["content"], each["metadata"], each["author"]) for each in tombstones} == {(None, None, None)}
    assert [each for each in objects_in(ledger) if each["type"] == "summary" and each["erased"]]
    assert b"surrogate" not in ledger and b"call_1" in ledger
    assert IntegrityChecker.from_settings().run().is_clean


def test_a_conversation_that_is_there_under_another_name_is_a_conflict(conversation_id, tmp_path):
    before = Conversation.objects.count(), Message.objects.count(), ContextItem.objects.count()

    with pytest.raises(Conflict, match="their ids are unique"):
        imported(exported(conversation_id), tmp_path, session_id="copy")

    assert (Conversation.objects.count(), Message.objects.count(), ContextItem.objects.count()) == before

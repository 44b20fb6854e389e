"""What is broken around conversations is found: files, counts, blocks, acts, what was left open."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings

from compaction.engine import CompactionEngine
from conversations.audit import Act, AuditLog
from conversations.cold_storage.archiving import archive_stretch
from conversations.files.large_files import LargeFileService
from conversations.models import AuditEntry, ColdBlock, LargeFile, Message
from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from integrity.models import ConversationCheck
from integrity.retention.erasure import Erasures
from integrity.types import InvariantResult, ScanMode
from retrieval.delegation.grants import Grants
from tests.factories import a_conversation, a_workspace
from tests.integrity.breaking import Compacted, breaking, checked, forging, found, result, without
from tests.integrity.erasing import erased


def test_a_wrong_token_count_is_found_with_what_counting_gives(conversation):
    breaking("UPDATE messages SET token_count = token_count + 5 WHERE message_id = %s", conversation.message_ids[38])

    report = IntegrityChecker.from_settings().run()

    [finding] = result(report, "token_counts_are_recounts").findings
    kept = Message.objects.get(pk=conversation.message_ids[38]).token_count
    assert (finding.id, finding.detail) == (conversation.message(38), f"costs {kept - 5} tokens, not {kept}")


def recounted() -> InvariantResult:
    return result(IntegrityChecker.from_settings().run(extent=ScanMode.INCREMENTAL), "token_counts_are_recounts")


def test_an_incremental_check_recounts_the_same_sample_until_something_is_found(conversation):
    breaking("UPDATE messages SET token_count = token_count + 1 WHERE conversation_id = %s", conversation.id)

    first = recounted()
    ConversationCheck.objects.all().delete()
    second = recounted()
    thorough = recounted()

    assert 0 < first.count < 40
    assert first.findings == second.findings
    assert thorough.count == 40


@pytest.fixture
def file(conversation: Compacted) -> LargeFile:
    record = LargeFileService.from_settings().store(conversation_id=conversation.id, content=b"a,b\n1,2\n" * 1000)
    return LargeFile.objects.get(pk=record.file_id)


def bytes_of(file: LargeFile) -> Path:
    return Path(settings.MEDIA_ROOT) / file.storage_uri


def test_a_missing_altered_or_misplaced_file_is_found(file):
    def finding() -> str:
        [finding] = result(IntegrityChecker.from_settings().run(), "files_are_stored_whole").findings
        assert finding.id == file.file_id
        return finding.detail

    assert checked() == {}
    bytes_of(file).write_bytes(b"a,b\n1,3\n" * 1000)
    assert finding() == "its bytes in storage do not match its hash"
    bytes_of(file).unlink()
    assert finding() == "its bytes are missing from storage"
    forging("large_files", "UPDATE large_files SET storage_uri = '../../etc/passwd' WHERE file_id = %s", file.file_id)
    assert finding() == "its bytes cannot be read: SuspiciousFileOperation"


def test_a_file_that_was_cut_is_found_without_being_read(file):
    bytes_of(file).write_bytes(b"a,b\n")

    report = IntegrityChecker.from_settings().run(extent=ScanMode.INCREMENTAL)

    assert result(report, "files_are_stored_whole").findings[0].detail == "has 4 bytes in storage, not 8000"


@pytest.fixture
def block(conversation: Compacted) -> ColdBlock:
    archive_stretch(conversation.id, after_seq=0, log=AuditLog())
    return ColdBlock.objects.get(conversation_id=conversation.id)


def test_cold_messages_and_blocks_that_do_not_belong_together_are_found(conversation, block):
    forging("cold_blocks", "UPDATE cold_blocks SET last_seq = 39 WHERE cold_block_id = %s", block.pk)
    assert checked() == {"cold_messages_point_at_their_block": [conversation.message(40)]}

    breaking(
        "INSERT INTO cold_blocks"
        " (conversation_id, first_seq, last_seq, message_count, packed, packed_hash, bytes_before)"
        " SELECT conversation_id, first_seq, last_seq, message_count, packed, packed_hash, 0 FROM cold_blocks"
    )
    unused = f"cold_{ColdBlock.objects.latest('pk').pk}"
    assert set(checked()["cold_messages_point_at_their_block"]) == {conversation.message(40), unused}


def test_texts_that_left_without_an_act_are_found(conversation, block):
    act = AuditEntry.objects.get(conversation_id=conversation.id).pk
    breaking("DELETE FROM audit_log WHERE conversation_id = %s", conversation.id)
    assert checked() == {
        "texts_leave_by_recorded_acts": [f"cold_{block.pk}"],
        "acts_are_chained": [f"act_{act}"],
        "rows_belong_to_something": [f"act_{act}"],
    }

    another = AuditLog().record(Act.RESTORE, conversation_id=conversation.id)
    breaking("UPDATE messages SET erased_by_id = %s WHERE message_id = %s", another.pk, conversation.message_ids[30])
    assert conversation.message(30) in checked()["texts_leave_by_recorded_acts"]


def test_quarantines_of_what_is_not_there_are_found(conversation):
    targets = ["file_gone", "msg_1000000", "part_gone", "sum_gone"]
    insert = "INSERT INTO quarantines (conversation_id, target, reason) SELECT %s, unnest(%s::text[]), 'because'"
    forging("quarantines", insert, conversation.id, targets)
    breaking("UPDATE conversations SET quarantined = 4 WHERE conversation_id = %s", conversation.id)

    found = checked()
    assert {code: sorted(ids) for code, ids in found.items()} == {"quarantines_hold_what_there_is": targets}


def test_grants_that_do_not_end_are_found(conversation):
    wanted = {"workspace_id": a_workspace().pk, "item_ids": ["msg_1"], "depth": 1, "token_cap": 100, "seconds": 60}
    grants = [Grants.from_settings().issue(question="?", **wanted).grant_id for _ in range(2)]
    for grant_id, moment in zip(grants, ("now() - interval '40 days'", "now() + interval '1 year'"), strict=True):
        forging("grants", f"UPDATE grants SET expires_at = {moment} WHERE grant_id = %s", grant_id)

    [(code, ids)] = checked().items()
    assert (code, sorted(ids)) == ("grants_come_to_an_end", sorted(grants))
    assert found(IntegrityChecker.from_settings(Scope(a_workspace("another").pk)).run()) == {}


def test_rows_that_belong_to_nothing_are_found_and_are_no_workspaces(conversation, file):
    CompactionEngine.from_settings().request(conversation_id=conversation.id)
    breaking("UPDATE compaction_jobs SET conversation_id = 1000000")
    breaking("UPDATE large_files SET conversation_id = 1000000")
    assert found(IntegrityChecker.from_settings(Scope(a_workspace().pk)).run()) == {}

    without("message_parts_message_id_ordinal_key", "message_parts")
    breaking("UPDATE message_parts SET message_id = 1000000 WHERE part_id LIKE 'part_%%'")

    lost = checked()["rows_belong_to_something"]
    assert {id.partition("_")[0] for id in lost} == {"job", "file", "part"}


def test_a_message_of_no_conversation_is_found(db):
    conversation_id = a_conversation("hello").conversation_id
    breaking("DELETE FROM context_items WHERE conversation_id = %s", conversation_id)
    breaking("DELETE FROM conversations WHERE conversation_id = %s", conversation_id)

    report = IntegrityChecker.from_settings().run()

    [finding] = result(report, "rows_belong_to_something").findings
    assert finding.conversation_id == conversation_id
    assert finding.detail == f"messages: there is no conversation_id {conversation_id}"


def test_what_was_erased_is_passed_over_and_its_chain_still_checked(conversation):
    erased(Erasures.from_settings(), conversation.id, from_seq=30, to_seq=40)
    assert checked() == {}

    breaking(
        "UPDATE messages SET created_at = created_at - interval '1 day' WHERE message_id = %s",
        conversation.message_ids[35],
    )

    assert checked() == {"chains_are_unbroken": [conversation.message(35)]}

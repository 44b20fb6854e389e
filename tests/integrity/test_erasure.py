"""What has to be erased by law goes for good; what is left still verifies."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.storage import InMemoryStorage

from compaction.background.worker import CompactionWorker
from compaction.engine import CompactionEngine
from compaction.models import CompactionJob
from conversations.audit import AuditLog
from conversations.cold_storage.cold_texts import unpacked
from conversations.errors import Conflict
from conversations.files.large_files import LargeFileService
from conversations.models import (
    ColdBlock,
    ContextItem,
    FileReference,
    LargeFile,
    Message,
    Summary,
)
from conversations.types import NewMessage, PartType, Role
from integrity.models import Erasure
from integrity.retention.tiers import Retention
from retrieval.assembler import ContextAssembler
from retrieval.engine import RetrievalEngine
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result
from tests.integrity.erasing import (
    SECRET,
    WORDS,
    a_secret_conversation,
    assert_clean,
    erased,
    everything_stored,
    is_used,
    message,
)
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("is_cold", [False, True], ids=["hot", "cold"])
def test_not_one_row_of_the_database_holds_what_was_erased(erasures, is_cold):
    conversation_id = a_secret_conversation()
    is_used(conversation_id)
    if is_cold:
        Retention.from_settings().archive(conversation_id=conversation_id)

    preview, result = erased(erasures, conversation_id, from_seq=20, to_seq=22)

    assert preview.cold_messages == (3 if is_cold else 0)
    assert (result.message_count, result.summary_count) == (3, preview.summary_count)
    assert SECRET not in everything_stored()
    assert SECRET.lower() not in everything_stored()
    blocks = [unpacked(bytes(block)) for block in ColdBlock.objects.values_list("packed", flat=True)]
    assert [len(block) for block in blocks] == ([57] if is_cold else [])
    assert SECRET not in repr(blocks)
    messages = a_store().list_messages(conversation_id=conversation_id)
    assert not any(SECRET in repr(each) for each in messages)
    assert all(WORDS in each.content for each in messages if each.seq not in (20, 21, 22))


@pytest.mark.parametrize("is_cold", [False, True], ids=["hot", "cold"])
def test_what_is_left_is_a_tombstone_with_its_hashes_and_the_chain_verifies(erasures, is_cold):
    conversation_id = a_secret_conversation()
    kept = ("message_id", "seq", "role", "token_count", "created_at", "content_hash", "entry_hash", "chain_hash")
    before = list(Message.objects.order_by("seq").values_list(*kept))
    if is_cold:
        Retention.from_settings().archive(conversation_id=conversation_id)

    _, result = erased(erasures, conversation_id, from_seq=20, to_seq=22)

    assert list(Message.objects.order_by("seq").values_list(*kept)) == before
    tombstone = message(conversation_id, 21)
    assert (tombstone.content, tombstone.metadata, tombstone.erased_by_id) == ("", {}, result.audit_id)
    assert (tombstone.parts[0].part_type, tombstone.parts[0].tool_call_id) == (PartType.TOOL, "c1")
    assert (tombstone.parts[0].tool_input, tombstone.parts[0].tool_output) == (None, None)
    assert message(conversation_id, 20).idempotency_key is None
    assert_clean()


def test_the_summaries_that_a_model_sees_are_made_again_from_what_remains(erasures):
    conversation_id = a_secret_conversation()
    seen = "".join(
        item.text for item in ContextAssembler.from_settings().assemble(conversation_id=conversation_id).items
    )
    assert SECRET in seen

    preview, result = erased(erasures, conversation_id, from_seq=20, to_seq=22)
    meanwhile = ContextAssembler.from_settings().assemble(conversation_id=conversation_id)
    job = CompactionJob.objects.get(pk=result.job_id)
    CompactionWorker.from_settings().work(job_id=job.pk)
    afterwards = ContextAssembler.from_settings().assemble(conversation_id=conversation_id)

    marked = [item for item in meanwhile.items if item.erased]
    assert {item.id for item in marked} == {each.summary_id for each in preview.summaries if each.active}
    assert all("[erased]" in item.text for item in marked)
    assert (job.reason, job.conversation_id) == ("redo", conversation_id)
    assert not any(item.erased for item in afterwards.items)
    assert SECRET not in "".join(item.text for item in afterwards.items)
    made = Summary.objects.filter(supersedes__in=[each.summary_id for each in preview.summaries])
    assert made.count() == preview.summary_count
    assert all("harbour" in summary.content for summary in made)
    assert_clean()


def test_a_wish_that_another_one_stood_in_the_way_of_is_made_again_by_the_sweep(erasures):
    conversation_id = a_secret_conversation()
    engine = CompactionEngine.from_settings()
    engine.request(conversation_id=conversation_id)
    erased(erasures, conversation_id, from_seq=20, to_seq=22)
    CompactionWorker.from_settings().work()
    before = ContextItem.objects.filter(summary__erased_by__isnull=False).exists()

    erasures.sweep()
    CompactionWorker.from_settings().work()
    erasures.sweep()

    assert before
    assert not ContextItem.objects.filter(summary__erased_by__isnull=False).exists()
    assert not CompactionJob.objects.filter(state="queued").exists()


def test_summaries_of_summaries_are_erased_and_made_again_all_the_way_up(erasures):
    store = a_store()
    conversation_id = a_secret_conversation(compacted=False)
    leaves = [
        a_summary_of(store, conversation_id, seqs=range(first, first + 10), content=f"{WORDS} {SECRET}")
        for first in (1, 11, 21, 31)
    ]
    middle = a_summary_of(store, conversation_id, summaries=leaves[:3], content=f"{WORDS} {SECRET}")
    top = a_summary_of(store, conversation_id, summaries=[middle, leaves[3]], content=f"{WORDS} {SECRET}")
    untouched = leaves[0].summary_id, leaves[3].summary_id

    preview, _ = erased(erasures, conversation_id, from_seq=20, to_seq=22)
    result = CompactionEngine.from_settings().redo(conversation_id=conversation_id)

    gone = {each.summary_id for each in preview.summaries}
    assert gone == {leaves[1].summary_id, leaves[2].summary_id, middle.summary_id, top.summary_id}
    assert {each.pk for each in Summary.objects.filter(content="")} == gone
    assert Summary.objects.filter(pk__in=untouched, erased_by=None).count() == 2
    assert result.redone_summaries == 4
    [shown] = Summary.objects.filter(supersedes=top.summary_id)
    assert ContextItem.objects.filter(summary=shown).exists()
    assert shown.content
    assert_clean()


def test_where_nothing_remains_the_summary_stays_erased_and_nobody_tries_again_and_again(erasures):
    conversation_id = a_secret_conversation()
    leaf = Summary.objects.filter(kind="leaf").order_by("first_seq").first()

    erased(erasures, conversation_id, from_seq=leaf.first_seq, to_seq=leaf.last_seq)
    first = CompactionEngine.from_settings().redo(conversation_id=conversation_id)

    leaf.refresh_from_db()
    assert leaf.content == ""
    assert not Summary.objects.filter(supersedes=leaf).exists()
    assert first.outcome in ("nothing_to_do", "compacted")
    assert CompactionEngine.from_settings().redo(conversation_id=conversation_id).outcome == "nothing_to_do"


def test_every_way_of_reading_shows_the_tombstone(erasures):
    conversation_id = a_secret_conversation()
    summary_id = Summary.objects.filter(first_seq__lte=20, last_seq__gte=22, kind="leaf").first().pk
    gone = Message.objects.get(seq=20)

    erased(erasures, conversation_id, from_seq=20, to_seq=22)

    engine = RetrievalEngine.from_settings()
    page = engine.expand_range(conversation_id=conversation_id, from_seq=19, to_seq=23, only_messages=True)
    assert [item.erased for item in page.items] == [False, True, True, True, False]
    assert engine.describe(id=f"msg_{gone.pk}").erased
    assert engine.describe(id=summary_id).erased
    assert not engine.describe(id=f"msg_{message(conversation_id, 19).message_id}").erased
    for query, mode in ((SECRET, "full_text"), (SECRET, "regex"), ("^$", "regex"), ("x*y*", "regex")):
        found = engine.grep(query=query, mode=mode, conversation_id=conversation_id, scope="both")
        assert gone.pk not in [match.id for match in found.matches]
        assert not {f"msg_{gone.pk}", summary_id} & {match.id for match in found.matches}
    past = ContextAssembler.from_settings().assemble(conversation_id=conversation_id, as_of=22)
    assert [item.text for item in past.items if item.first_seq in (20, 21, 22)] == ["[erased]"] * 3


@pytest.mark.parametrize("format", ["neutral", "openai", "anthropic"])
def test_a_model_is_told_that_something_was_erased_in_messages_that_every_api_takes(erasures, format):
    conversation_id = a_secret_conversation(compacted=False)
    erased(erasures, conversation_id, from_seq=20, to_seq=22)

    context = ContextAssembler.from_settings().assemble(conversation_id=conversation_id, format=format)

    assert str(context.messages).count("[erased]") == 3
    assert SECRET not in str(context.messages)


def test_single_messages_are_named_by_their_ids(erasures):
    conversation_id = a_secret_conversation(compacted=False)
    ids = [message(conversation_id, seq).message_id for seq in (20, 22)]

    preview, _ = erased(erasures, conversation_id, message_ids=ids)

    assert (preview.message_count, preview.first_seq, preview.last_seq) == (2, 20, 22)
    assert [message(conversation_id, seq).erased_by_id is None for seq in (20, 21, 22)] == [False, True, False]


def test_files_go_along_with_the_last_message_that_needs_them_and_their_bytes_with_the_last_file(erasures, storage):
    conversation_id = a_secret_conversation(compacted=False)
    elsewhere = a_conversation("another").conversation_id
    service = LargeFileService.from_settings(erasures.scope)
    alone = service.store(conversation_id=conversation_id, content=f"{SECRET} alone".encode(), file_name=SECRET)
    shared = service.store(conversation_id=conversation_id, content=f"{SECRET} shared".encode(), file_name=SECRET)
    same = service.store(conversation_id=elsewhere, content=f"{SECRET} shared".encode(), file_name="same")

    preview, result = erased(erasures, conversation_id, file_ids=[alone.file_id, shared.file_id])

    assert preview.confirmation == f"erase 2 files of conversation {conversation_id} for good"
    assert {file.file_id: file.bytes_stay for file in preview.files} == {alone.file_id: False, shared.file_id: True}
    assert not storage.exists(alone.storage_uri)
    assert service.read(file_id=same.file_id) == f"{SECRET} shared".encode()
    gone = service.get(file_id=alone.file_id)
    assert (gone.file_name, gone.exploration_summary, gone.erased_by_id) == (None, None, result.audit_id)
    assert gone.content_hash == alone.content_hash
    assert LargeFile.objects.filter(erased_by=None).count() == 1
    assert Erasure.objects.get().bytes_left == []


def test_a_file_that_a_message_holds_goes_along_unless_another_message_needs_it(erasures, storage):
    conversation_id = a_secret_conversation(compacted=False)
    service = LargeFileService.from_settings(erasures.scope)
    own = service.store(conversation_id=conversation_id, content=f"{SECRET} 1".encode())
    needed = service.store(conversation_id=conversation_id, content=b"needed elsewhere")
    for seq, file in ((20, own), (21, own), (21, needed), (50, needed)):
        FileReference.objects.create(
            message_id=message(conversation_id, seq).message_id, file_id=file.file_id, field="content"
        )

    preview, _ = erased(erasures, conversation_id, from_seq=20, to_seq=22)

    assert [file.file_id for file in preview.files] == [own.file_id]
    assert preview.file_ids_kept == (needed.file_id,)
    assert not storage.exists(own.storage_uri)
    assert service.read(file_id=needed.file_id) == b"needed elsewhere"


def test_all_of_a_conversation_goes_with_its_title_its_metadata_and_its_files(erasures, storage):
    conversation_id = a_conversation("one", "two", title=SECRET, metadata={"who": SECRET}).conversation_id
    file = LargeFileService.from_settings(erasures.scope).store(conversation_id=conversation_id, content=b"file")
    stale = erasures.preview_erasure(conversation_id=conversation_id)
    a_store().append_messages(conversation_id=conversation_id, messages=[NewMessage(Role.USER, SECRET)])

    with pytest.raises(Conflict) as refusal:
        erasures.erase(erasure_id=stale.erasure_id, confirmation=stale.confirmation)
    preview, result = erased(erasures, conversation_id)

    assert refusal.value.code == "erasure_outdated"
    assert preview.is_whole
    assert preview.confirmation == f"erase 3 messages and 1 file of conversation {conversation_id} (all of it) for good"
    assert (result.message_count, result.file_count) == (3, 1)
    assert SECRET not in everything_stored()
    assert not storage.exists(file.storage_uri)
    assert_clean()


def test_bytes_that_could_not_be_removed_at_once_are_removed_by_the_sweep(erasures, storage, monkeypatch):
    conversation_id = a_secret_conversation(compacted=False)
    file = LargeFileService.from_settings(erasures.scope).store(conversation_id=conversation_id, content=b"secret")

    def away(self: Any, name: str) -> None:
        raise OSError("the disk is away")

    with monkeypatch.context() as patched:
        patched.setattr(InMemoryStorage, "delete", away)
        erased(erasures, conversation_id, file_ids=[file.file_id])
        left = Erasure.objects.get().bytes_left
    erasures.sweep()

    assert left == [file.storage_uri]
    assert not storage.exists(file.storage_uri)
    assert Erasure.objects.get().bytes_left == []


def test_the_audit_log_tells_who_erased_what_and_none_of_what_was_said(erasures):
    conversation_id = a_secret_conversation()

    preview, result = erased(erasures, conversation_id, from_seq=20, to_seq=22)

    act, previewed, *_ = AuditLog().list_acts(conversation_id=conversation_id)
    assert (act.audit_id, act.act, act.actor) == (result.audit_id, "erase", "key 7")
    assert act.target == previewed.target == preview.erasure_id
    assert (act.detail["first_seq"], act.detail["last_seq"], act.detail["messages"]) == (20, 22, 3)


def test_a_call_and_its_result_still_belong_together_when_one_of_them_is_erased(erasures):
    store = a_store()
    conversation_id = a_conversation("first").conversation_id
    store.append_messages(
        conversation_id=conversation_id,
        messages=[a_tool_call("c9", path="boats.txt"), a_tool_result("c9", SECRET), NewMessage(Role.USER, "and?")],
    )

    erased(erasures, conversation_id, from_seq=3, to_seq=3)

    context = ContextAssembler.from_settings().assemble(conversation_id=conversation_id, format="openai")
    results = [each for each in context.messages if each["role"] == "tool"]
    assert [(each["tool_call_id"], each["content"]) for each in results] == [("c9", "[erased]")]

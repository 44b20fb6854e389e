"""What has to be erased by law goes for good, once it was previewed and confirmed; what is left still verifies."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from compaction.background.worker import CompactionWorker
from compaction.engine import CompactionEngine
from compaction.models import CompactionJob
from conversations.audit import AuditLog
from conversations.cold_storage.cold_texts import unpacked
from conversations.content.hashing import erased_key
from conversations.errors import Conflict, ConversationBusy, Invalid, NotFound
from conversations.files.large_files import LargeFileService
from conversations.models import ColdBlock, ContextItem, Conversation, FileReference, LargeFile, Message, Summary
from conversations.scope import Scope
from conversations.types import NewPart, PartType
from integrity.models import Erasure
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from retrieval.assembler import ContextAssembler
from retrieval.engine import RetrievalEngine
from tests.compacting import another_session_compacts
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace, say
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


@pytest.fixture(scope="module")
def secret(module_rows: None) -> int:
    """A conversation whose secret each test erases for itself alone."""
    return a_secret_conversation()


@pytest.mark.parametrize("is_cold", [False, True], ids=["hot", "cold"])
def test_no_row_holds_what_was_erased_and_a_tombstone_with_its_hashes_is_left(erasures, is_cold, secret):
    is_used(secret)
    kept = ("message_id", "seq", "role", "token_count", "created_at", "content_hash", "entry_hash", "chain_hash")
    before = list(Message.objects.order_by("seq").values_list(*kept))
    if is_cold:
        Retention.from_settings().archive(conversation_id=secret)

    preview, result = erased(erasures, secret, from_seq=20, to_seq=22)

    assert preview.cold_messages == (3 if is_cold else 0)
    assert (result.message_count, result.summary_count) == (3, preview.summary_count)
    assert SECRET.lower() not in everything_stored().lower()
    blocks = [unpacked(bytes(block)) for block in ColdBlock.objects.values_list("packed", flat=True)]
    assert [len(block) for block in blocks] == ([57] if is_cold else [])
    messages = a_store().list_messages(conversation_id=secret)
    assert SECRET not in repr((blocks, messages))
    assert all(WORDS in each.content for each in messages if each.seq not in (20, 21, 22))
    assert list(Message.objects.order_by("seq").values_list(*kept)) == before
    tombstone = message(secret, 21)
    assert (tombstone.content, tombstone.metadata, tombstone.erased_by_id) == ("", {}, result.audit_id)
    assert (tombstone.parts[0].part_type, tombstone.parts[0].tool_call_id) == (PartType.TOOL, "c1")
    assert (tombstone.parts[0].tool_input, tombstone.parts[0].tool_output) == (None, None)
    assert message(secret, 20).idempotency_key == erased_key(SECRET)
    assert_clean()


def test_the_summaries_that_a_model_sees_are_made_again_from_what_remains(erasures, secret):

    def shown():
        return ContextAssembler.from_settings().assemble(conversation_id=secret).items

    assert SECRET in "".join(item.text for item in shown())
    preview, result = erased(erasures, secret, from_seq=20, to_seq=22)
    marked = [item for item in shown() if item.erased]
    job = CompactionJob.objects.get(pk=result.job_id)
    CompactionWorker.from_settings().work(job_id=job.pk)

    assert {item.id for item in marked} == {each.summary_id for each in preview.summaries if each.active}
    assert all("[erased]" in item.text for item in marked)
    assert (job.reason, job.conversation_id) == ("redo", secret)
    assert not any(item.erased for item in shown())
    assert SECRET not in "".join(item.text for item in shown())
    made = Summary.objects.filter(supersedes__in=[each.summary_id for each in preview.summaries])
    assert made.count() == preview.summary_count
    assert all("harbour" in summary.content for summary in made)
    assert_clean()


def test_a_wish_that_another_one_stood_in_the_way_of_is_made_again_by_the_sweep(erasures, secret):
    engine = CompactionEngine.from_settings()
    engine.request(conversation_id=secret)
    erased(erasures, secret, from_seq=20, to_seq=22)
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


def test_where_nothing_remains_the_summary_stays_erased_and_nobody_tries_again_and_again(erasures, secret):
    leaf = Summary.objects.filter(kind="leaf").order_by("first_seq").first()

    erased(erasures, secret, from_seq=leaf.first_seq, to_seq=leaf.last_seq)
    first = CompactionEngine.from_settings().redo(conversation_id=secret)

    leaf.refresh_from_db()
    assert leaf.content == ""
    assert not Summary.objects.filter(supersedes=leaf).exists()
    assert first.outcome in ("nothing_to_do", "compacted")
    assert CompactionEngine.from_settings().redo(conversation_id=secret).outcome == "nothing_to_do"


def test_every_way_of_reading_shows_the_tombstone(erasures, secret):
    summary_id = Summary.objects.filter(first_seq__lte=20, last_seq__gte=22, kind="leaf").first().pk
    gone = Message.objects.get(seq=20)

    erased(erasures, secret, from_seq=20, to_seq=22)

    engine = RetrievalEngine.from_settings()
    page = engine.expand_range(conversation_id=secret, from_seq=19, to_seq=23, only_messages=True)
    assert [item.erased for item in page.items] == [False, True, True, True, False]
    assert engine.describe(id=f"msg_{gone.pk}").erased
    assert engine.describe(id=summary_id).erased
    assert not engine.describe(id=f"msg_{message(secret, 19).message_id}").erased
    for query, mode in ((SECRET, "full_text"), (SECRET, "regex"), ("^$", "regex"), ("x*y*", "regex")):
        found = engine.grep(query=query, mode=mode, conversation_id=secret, scope="both")
        assert gone.pk not in [match.id for match in found.matches]
        assert not {f"msg_{gone.pk}", summary_id} & {match.id for match in found.matches}
    past = ContextAssembler.from_settings().assemble(conversation_id=secret, as_of=22)
    assert [item.text for item in past.items if item.first_seq in (20, 21, 22)] == ["[erased]"] * 3


def test_a_model_is_told_that_something_was_erased_in_messages_that_every_api_takes(erasures):
    conversation_id = a_secret_conversation(compacted=False)
    erased(erasures, conversation_id, from_seq=20, to_seq=22)

    for format in ("neutral", "openai", "anthropic"):
        context = ContextAssembler.from_settings().assemble(conversation_id=conversation_id, format=format)
        assert str(context.messages).count("[erased]") == 3
        assert SECRET not in str(context.messages)


def test_single_messages_are_named_by_their_ids(erasures, secret):
    ids = [message(secret, seq).message_id for seq in (20, 22)]

    preview, _ = erased(erasures, secret, message_ids=ids)

    assert (preview.message_count, preview.first_seq, preview.last_seq) == (2, 20, 22)
    assert [message(secret, seq).erased_by_id is None for seq in (20, 21, 22)] == [False, True, False]


def test_files_go_along_with_the_last_message_that_needs_them_and_their_bytes_with_the_last_file(
    erasures, storage, secret
):
    elsewhere = a_conversation("another").conversation_id
    service = LargeFileService.from_settings(erasures.scope)
    alone = service.store(conversation_id=secret, content=f"{SECRET} alone".encode(), file_name=SECRET)
    shared = service.store(conversation_id=secret, content=f"{SECRET} shared".encode(), file_name=SECRET)
    same = service.store(conversation_id=elsewhere, content=f"{SECRET} shared".encode(), file_name="same")

    preview, result = erased(erasures, secret, file_ids=[alone.file_id, shared.file_id])

    assert preview.confirmation == f"erase 2 files of conversation {secret} for good"
    assert {file.file_id: file.bytes_stay for file in preview.files} == {alone.file_id: False, shared.file_id: True}
    assert not storage.exists(alone.storage_uri)
    assert service.read(file_id=same.file_id) == f"{SECRET} shared".encode()
    gone = service.get(file_id=alone.file_id)
    assert (gone.file_name, gone.exploration_summary, gone.erased_by_id) == (None, None, result.audit_id)
    assert gone.content_hash == alone.content_hash
    assert LargeFile.objects.filter(erased_by=None).count() == 1
    assert Erasure.objects.get().bytes_left == []


def test_a_file_that_a_message_holds_goes_along_unless_another_message_needs_it(erasures, storage, secret):
    service = LargeFileService.from_settings(erasures.scope)
    own = service.store(conversation_id=secret, content=f"{SECRET} 1".encode())
    needed = service.store(conversation_id=secret, content=b"needed elsewhere")
    for seq, file in ((20, own), (21, own), (21, needed), (50, needed)):
        FileReference.objects.create(message_id=message(secret, seq).message_id, file_id=file.file_id, field="content")

    preview, _ = erased(erasures, secret, from_seq=20, to_seq=22)

    assert [file.file_id for file in preview.files] == [own.file_id]
    assert preview.file_ids_kept == (needed.file_id,)
    assert not storage.exists(own.storage_uri)
    assert service.read(file_id=needed.file_id) == b"needed elsewhere"


# Stands in no other conversation.
ITS_OWN = "Terpsichore"


def test_all_of_a_conversation_goes_with_its_title_its_metadata_and_its_files(erasures, storage):
    conversation_id = a_conversation("one", "two", title=ITS_OWN, metadata={"who": ITS_OWN}).conversation_id
    file = LargeFileService.from_settings(erasures.scope).store(conversation_id=conversation_id, content=b"file")
    stale = erasures.preview_erasure(conversation_id=conversation_id)
    say(conversation_id, ITS_OWN)

    with pytest.raises(Conflict) as refusal:
        erasures.erase(erasure_id=stale.erasure_id, confirmation=stale.confirmation)
    preview, result = erased(erasures, conversation_id)

    assert refusal.value.code == "erasure_outdated"
    assert preview.is_whole
    assert preview.confirmation == f"erase 3 messages and 1 file of conversation {conversation_id} (all of it) for good"
    assert (result.message_count, result.file_count) == (3, 1)
    assert ITS_OWN not in everything_stored()
    assert not storage.exists(file.storage_uri)
    assert_clean()


def test_a_call_and_its_result_still_belong_together_when_one_of_them_is_erased(erasures):
    conversation_id = a_conversation("first").conversation_id
    say(conversation_id, a_tool_call("c9", path="boats.txt"), a_tool_result("c9", SECRET), "and?")

    erased(erasures, conversation_id, from_seq=3, to_seq=3)

    context = ContextAssembler.from_settings().assemble(conversation_id=conversation_id, format="openai")
    results = [each for each in context.messages if each["role"] == "tool"]
    assert [(each["tool_call_id"], each["content"]) for each in results] == [("c9", "[erased]")]


def test_a_preview_tells_what_would_go_and_touches_nothing_and_both_steps_are_acts(erasures, secret):
    before = everything_stored()

    preview = erasures.preview_erasure(conversation_id=secret, from_seq=20, to_seq=22)

    holding = Summary.objects.filter(first_seq__lte=22, last_seq__gte=20)
    assert (preview.message_count, preview.first_seq, preview.last_seq) == (3, 20, 22)
    assert preview.token_count == sum(message(secret, seq).token_count for seq in (20, 21, 22))
    assert {each.summary_id for each in preview.summaries} == set(holding.values_list("pk", flat=True))
    assert preview.summary_count == len(preview.summaries) >= 1
    assert preview.active_summaries >= 1
    assert preview.confirmation == f"erase 3 messages of conversation {secret} for good"
    assert before.count(SECRET) == everything_stored().count(SECRET)

    result = erasures.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)

    act, previewed, *_ = AuditLog().list_acts(conversation_id=secret)
    assert (act.audit_id, act.act, previewed.act) == (result.audit_id, "erase", "preview_erasure")
    for each in (act, previewed):
        assert (each.actor, each.target) == ("key 7", preview.erasure_id)
        assert (each.detail["first_seq"], each.detail["last_seq"], each.detail["messages"]) == (20, 22, 3)


def test_without_the_confirmation_letter_by_letter_too_late_or_twice_nothing_is_erased(erasures, secret):
    preview = erasures.preview_erasure(conversation_id=secret, from_seq=20, to_seq=22)
    before = everything_stored().count(SECRET)
    later = replace(erasures, now=lambda: datetime.now(UTC) + timedelta(minutes=61))

    def refusal(confirmation: str, service: Erasures = erasures) -> str:
        with pytest.raises((Invalid, Conflict)) as refusal:
            service.erase(erasure_id=preview.erasure_id, confirmation=confirmation)
        return refusal.value.code

    for typed in ("", "yes", preview.confirmation.upper(), f"{preview.confirmation} "):
        assert refusal(typed) == "not_confirmed"
    assert refusal(preview.confirmation, later) == "erasure_expired"
    assert everything_stored().count(SECRET) == before
    erasures.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)
    assert refusal(preview.confirmation) == "erasure_done"


def _a_summary_is_made(conversation_id: int) -> None:
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)


def _a_part_is_added(conversation_id: int) -> None:
    a_store().create_message_parts(
        message_id=message(conversation_id, 20).message_id, parts=[NewPart(PartType.TEXT, text_content="more")]
    )


@pytest.mark.parametrize("change", [_a_summary_is_made, _a_part_is_added])
def test_if_anything_has_changed_since_the_preview_nothing_is_erased(erasures, change):
    conversation_id = a_secret_conversation(compacted=False)
    preview = erasures.preview_erasure(conversation_id=conversation_id, from_seq=20, to_seq=22)

    change(conversation_id)

    with pytest.raises(Conflict) as refusal:
        erasures.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)
    assert refusal.value.code == "erasure_outdated"
    assert SECRET in message(conversation_id, 20).content


def test_while_a_compaction_is_running_nothing_is_erased(erasures, secret):
    preview = erasures.preview_erasure(conversation_id=secret, from_seq=20, to_seq=22)

    with another_session_compacts(secret), pytest.raises(ConversationBusy):
        erasures.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)


def test_what_moves_to_the_cold_tier_and_what_is_appended_changes_nothing_about_it(erasures, secret):
    preview = erasures.preview_erasure(conversation_id=secret, from_seq=20, to_seq=22)

    say(secret, "and then")
    Retention.from_settings().archive(conversation_id=secret)
    erasures.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)

    assert SECRET not in everything_stored()
    assert Conversation.objects.get().cold_messages == 58
    assert_clean()


def test_what_was_erased_is_not_archived_and_the_rest_is_thawed_as_it_was(erasures, secret):
    erased(erasures, secret, from_seq=20, to_seq=22)
    before = a_store().list_messages(conversation_id=secret)
    service = Retention.from_settings()

    cold = service.archive(conversation_id=secret)
    while_cold = a_store().list_messages(conversation_id=secret)
    service.thaw(conversation_id=secret)

    assert cold.messages == len(before) - 3
    assert while_cold == before
    assert a_store().list_messages(conversation_id=secret) == before


def test_what_names_nothing_or_is_erased_already_is_refused(erasures, secret):
    erased(erasures, secret, from_seq=20, to_seq=22)

    assert erasures.preview_erasure(conversation_id=secret, from_seq=21, to_seq=23).message_count == 1
    for first, last in ((20, None), (None, 20), (22, 20)):
        with pytest.raises(Invalid) as refusal:
            erasures.preview_erasure(conversation_id=secret, from_seq=first, to_seq=last)
        assert refusal.value.code != "nothing_to_erase"
    last_seq = a_store().list_messages(conversation_id=secret)[-1].seq
    empty = a_conversation(session_id="empty").conversation_id

    for conversation_id, chosen, why in (
        (secret, {"from_seq": 20, "to_seq": 22}, "already erased"),
        (secret, {"from_seq": 1000, "to_seq": 2000}, f"no messages in that range; .* the seq {last_seq}"),
        (empty, {}, "no messages and no files"),
    ):
        with pytest.raises(Invalid, match=why) as refusal:
            erasures.preview_erasure(conversation_id=conversation_id, **chosen)
        assert refusal.value.code == "nothing_to_erase"


def test_a_stranger_erases_nothing_and_learns_nothing(erasures, secret):
    preview = erasures.preview_erasure(conversation_id=secret, from_seq=20, to_seq=22)
    stranger = Erasures.from_settings(Scope(a_workspace("elsewhere").pk))
    other = a_conversation("theirs", workspace=a_workspace("elsewhere")).conversation_id

    with pytest.raises(NotFound):
        stranger.preview_erasure(conversation_id=secret, from_seq=20, to_seq=22)
    with pytest.raises(NotFound):
        stranger.preview_erasure(conversation_id=other, message_ids=[message(secret, 20).message_id])
    with pytest.raises(NotFound):
        stranger.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)

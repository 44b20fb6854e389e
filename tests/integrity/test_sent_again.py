"""Messages that were erased and are sent again: an append recognizes them by their keys, and stores no text."""

from __future__ import annotations

import pytest

from compaction.hosts.branching import Branches
from compaction.hosts.host_service import HostCompaction
from conversations.content.hashing import erased_key
from conversations.errors import Conflict, ConversationBusy, Unavailable
from conversations.models import LargeFile, Message
from conversations.store.conversations import ConversationStore
from conversations.types import NewMessage, Role
from tests.factories import a_conversation, say
from tests.integrity.erasing import SECRET, assert_clean, erased, everything_stored

pytestmark = pytest.mark.django_db

LONG = f"{SECRET} " * 5000


def messages(*texts: str) -> list[NewMessage]:
    return [NewMessage(Role.USER, text, idempotency_key=f"key {number}") for number, text in enumerate(texts, start=1)]


def append(conversation_id, sent):
    return say(conversation_id, *sent).messages


@pytest.mark.parametrize("text", [f"My name is {SECRET}.", LONG], ids=["short", "moved to a file"])
def test_an_erased_message_that_is_sent_again_is_not_stored_again(erasures, storage, settings, text):
    settings.LCM = {"large_file_tokens": 2000}
    conversation_id = a_conversation().conversation_id
    sent = messages("one", text, "three")
    first = append(conversation_id, sent)
    erased(erasures, conversation_id, from_seq=2, to_seq=2)

    again = append(conversation_id, [*sent, NewMessage(Role.USER, "four", idempotency_key="key 4")])

    assert [each.message_id for each in again[:3]] == [each.message_id for each in first]
    assert [(each.seq, each.created, each.erased) for each in again] == [
        (1, False, False), (2, False, True), (3, False, False), (4, True, False),
    ]  # fmt: skip
    assert SECRET not in everything_stored()
    assert not LargeFile.objects.filter(erased_by=None).exists()
    assert not files_in(storage)
    assert_clean()


def files_in(storage, folder=""):
    folders, files = storage.listdir(folder)
    return [*files, *(name for each in folders for name in files_in(storage, f"{folder}/{each}".lstrip("/")))]


def test_a_long_text_that_is_erased_while_it_is_sent_again_is_in_no_file(erasures, storage, settings, monkeypatch):
    settings.LCM = {"large_file_tokens": 2000}
    conversation_id = a_conversation().conversation_id
    append(conversation_id, messages(LONG))

    def erase_and_fail(*args, **options):
        erased(erasures, conversation_id)
        raise Unavailable("The bytes of the file cannot be read.")

    # It is not recognized before the append, and is cut as if it were new.
    monkeypatch.setattr("conversations.store.messages.restore_texts", erase_and_fail)
    with pytest.raises(ConversationBusy, match="erased meanwhile"):
        append(conversation_id, messages(LONG))

    [again] = append(conversation_id, messages(LONG))
    assert (again.created, again.erased) == (False, True)
    assert not LargeFile.objects.filter(erased_by=None).exists()
    assert SECRET not in everything_stored()


def test_another_text_under_the_key_of_an_erased_message_is_not_stored_either(erasures):
    conversation_id = a_conversation().conversation_id
    append(conversation_id, messages("one", "two"))
    erased(erasures, conversation_id, from_seq=1, to_seq=1)

    [again] = append(conversation_id, messages(f"one, and {SECRET}"))

    assert (again.seq, again.created, again.erased) == (1, False, True)
    assert SECRET not in everything_stored()


def test_a_host_learns_that_an_erased_message_needs_not_be_sent_again(erasures):
    conversation_id = a_conversation().conversation_id
    append(conversation_id, messages("one", "two"))
    erased(erasures, conversation_id, from_seq=1, to_seq=2)

    coverage = HostCompaction.from_settings().verify_coverage(
        conversation_id=conversation_id, idempotency_keys=["key 1", "key 2", "key 3"]
    )

    assert coverage.missing_keys == ("key 3",)


@pytest.mark.parametrize("is_erased_too", [False, True])
def test_a_fork_recognizes_the_erased_messages_of_its_original_also_after_its_own_erasure(erasures, is_erased_too):
    conversation_id = a_conversation().conversation_id
    append(conversation_id, messages(f"I am {SECRET}", "two"))
    erased(erasures, conversation_id, from_seq=1, to_seq=1)
    fork = Branches(ConversationStore.from_settings()).fork_conversation(
        conversation_id=conversation_id, session_id="fork"
    )
    if is_erased_too:
        erased(erasures, fork.conversation_id)

    again = append(fork.conversation_id, messages(f"I am {SECRET}", "two"))

    assert [(each.seq, each.created, each.erased) for each in again] == [(1, False, True), (2, False, is_erased_too)]
    assert SECRET not in everything_stored()
    assert_clean()


def test_a_key_that_looks_like_that_of_an_erased_message_harms_no_other_message():
    conversation_id = a_conversation().conversation_id
    chosen = [NewMessage(Role.USER, "chosen", idempotency_key=erased_key("key 1"))]
    append(conversation_id, messages("one", "two"))
    append(conversation_id, chosen)

    again = append(conversation_id, [*messages("one", "two", "three"), *chosen])

    assert [(each.seq, each.created) for each in again] == [(1, False), (2, False), (4, True), (3, False)]
    with pytest.raises(Conflict):
        append(conversation_id, messages("other"))
    assert list(Message.objects.order_by("seq").values_list("content", flat=True)) == ["one", "two", "chosen", "three"]


@pytest.mark.parametrize("seqs", [{"from_seq": 1, "to_seq": 1}, {}], ids=["a part", "everything"])
def test_a_key_that_looks_like_that_of_an_erased_message_prevents_no_erasure(erasures, seqs):
    conversation_id = a_conversation().conversation_id
    append(conversation_id, messages(f"I am {SECRET}"))
    append(conversation_id, [NewMessage(Role.USER, "chosen", idempotency_key=erased_key("key 1"))])

    erased(erasures, conversation_id, **seqs)

    [again] = append(conversation_id, messages(f"I am {SECRET}"))
    assert not again.created
    assert SECRET not in everything_stored()
    assert_clean()

"""Bytes that two files share stay for the one that is left, and go with the last, whoever else is at work just then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.storage import InMemoryStorage

from conversations.files.large_files import BytesErased, LargeFileService
from conversations.files.uploads import UploadService
from conversations.models import Conversation, LargeFile
from integrity.models import Erasure
from integrity.retention.erasure import Erasures
from tests.conversations.appending import at_once
from tests.factories import a_conversation
from tests.integrity.erasing import assert_clean, erased, scope

# So often two are at work at once.
many_times = pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.thorough)])


def files() -> LargeFileService:
    return LargeFileService.from_settings()


def stored(conversation_id: int, content: bytes = b"shared") -> str:
    return files().store(conversation_id=conversation_id, content=content).file_id


def erase(conversation_id: int, file_id: str) -> None:
    erased(Erasures.from_settings(scope()), conversation_id, file_ids=[file_id])


def has_bytes(file_id: str) -> bool:
    return files().storage.exists(LargeFile.objects.get(pk=file_id).storage_uri)


def both_at_once(*works: Callable[[], None]) -> None:
    at_once(lambda number: works[number](), workers=2)


def two_conversations() -> tuple[int, int]:
    return a_conversation("one").conversation_id, a_conversation("two").conversation_id


@pytest.fixture
def conversations(committed_db: None) -> tuple[int, int]:
    return two_conversations()


@many_times
def test_the_last_two_erased_at_once_leave_no_bytes(conversations, rounds):
    for number in range(rounds):
        one, twin = (stored(each, b"twins %d" % number) for each in conversations)

        both_at_once(lambda: erase(conversations[0], one), lambda: erase(conversations[1], twin))  # noqa: B023

        assert not has_bytes(one)


@many_times
def test_who_stores_what_is_erased_at_that_moment_has_it_or_is_told_to_store_it_once_more(conversations, rounds):
    first, second = conversations
    for number in range(rounds):
        content = b"at that moment %d" % number
        one, again = stored(first, content), []

        def store() -> None:
            try:
                again.append(stored(second, content))  # noqa: B023
            except BytesErased:
                again.append(stored(second, content))  # noqa: B023

        both_at_once(lambda: erase(first, one), store)  # noqa: B023

        assert files().read(file_id=again[0]) == content
    assert_clean()


def test_bytes_that_went_before_the_row_was_written_are_asked_for_again_and_no_row_is_left(conversations):
    first, second = conversations
    one = stored(first)
    kept = files().keep(Conversation.objects.get(pk=second), b"shared")
    erase(first, one)

    with pytest.raises(BytesErased) as refusal:
        files().describe(kept)

    assert refusal.value.retryable
    assert not LargeFile.objects.filter(conversation_id=second).exists()
    assert files().read(file_id=stored(second)) == b"shared"


@pytest.mark.django_db
def test_an_upload_that_met_an_erasure_is_finished_by_asking_again(monkeypatch):
    first, second = two_conversations()
    one = stored(first)
    uploads = UploadService.from_settings()
    upload = uploads.begin(conversation_id=second, byte_size=6)
    uploads.put_chunk(upload_id=upload.upload_id, offset=0, content=b"shared")
    keep = LargeFileService.keep

    def kept_and_then_erased(*given: object, **named: object) -> LargeFile:
        found = keep(*given, **named)
        erase(first, one)
        return found

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(LargeFileService, "keep", kept_and_then_erased)
        with pytest.raises(BytesErased):
            uploads.finish(upload_id=upload.upload_id)
    finished = uploads.finish(upload_id=upload.upload_id)

    assert files().read(file_id=finished.file_id) == b"shared"
    assert_clean()


@pytest.mark.django_db
def test_bytes_that_could_not_be_removed_at_once_are_removed_by_the_sweep(erasures, storage, monkeypatch):
    conversation_id = a_conversation("one").conversation_id
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

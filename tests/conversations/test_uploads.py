"""Files that arrive in chunks."""

from __future__ import annotations

import hashlib
import os
import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.utils import timezone

from conversations.errors import Conflict, Invalid, NotFound, TooLarge, Unavailable
from conversations.files.large_files import LargeFileService
from conversations.files.storage import WholeFileStorage
from conversations.files.uploads import UploadService
from conversations.models import LargeFile, Upload, UploadChunk
from conversations.policy import FilePolicy
from conversations.scope import Scope
from conversations.tasks import sweep_uploads
from tests.conversations.appending import at_once
from tests.factories import a_conversation, a_workspace
from tests.statements import counted_statements

CHUNK = 1000
CONTENT = random.Random(7).randbytes(3 * CHUNK + 17)


def a_service(root: Path) -> UploadService:
    policy = replace(FilePolicy(), upload_chunk_bytes=CHUNK, max_file_bytes=100_000)
    storage, scope = WholeFileStorage(location=root), Scope(a_workspace().pk)
    return UploadService(files=LargeFileService(storage=storage, policy=policy, scope=scope))


@pytest.fixture
def uploads(tmp_path, db):
    return a_service(tmp_path)


@pytest.fixture
def begun(uploads):
    return uploads.begin(
        conversation_id=a_conversation().conversation_id,
        byte_size=len(CONTENT),
        file_name="noise.bin",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
    )


def put(uploads, upload_id, *offsets, content=CONTENT):
    for offset in offsets:
        record = uploads.put_chunk(upload_id=upload_id, offset=offset, content=content[offset : offset + CHUNK])
    return record


def on_disk(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_chunks_in_any_order_make_the_file(uploads, begun, tmp_path):
    assert begun.missing == (0, 1000, 2000, 3000)

    record = put(uploads, begun.upload_id, 3000, 0, 2000)
    with pytest.raises(Conflict, match="Missing chunks: 1 of 4") as refused:
        uploads.finish(upload_id=begun.upload_id)
    put(uploads, begun.upload_id, 1000)
    file = uploads.finish(upload_id=begun.upload_id)

    assert (record.missing, record.chunks_missing, record.chunks_received) == ((1000,), 1, 3)
    assert refused.value.context == {"missing": [1000]}
    assert uploads.files.read(file_id=file.file_id) == CONTENT
    assert (file.file_name, file.byte_size) == ("noise.bin", len(CONTENT))
    assert file.exploration_summary.startswith("binary, 3,017 bytes")
    assert on_disk(tmp_path) == [file.storage_uri] and list((tmp_path / "uploads").iterdir()) == []


def test_a_chunk_may_come_again_and_a_finish_too(uploads, begun):
    put(uploads, begun.upload_id, 0, 0, 1000, 2000, 3000, 0)

    first = uploads.finish(upload_id=begun.upload_id)
    again = uploads.finish(upload_id=begun.upload_id)

    assert again == first
    assert uploads.get_upload(upload_id=begun.upload_id).file_id == first.file_id
    assert uploads.list_uploads(conversation_id=begun.conversation_id) == []
    with pytest.raises(Conflict, match=first.file_id):
        put(uploads, begun.upload_id, 0)


def test_a_finish_that_another_one_overtakes_gets_the_same_file(uploads, begun, monkeypatch):
    put(uploads, begun.upload_id, 0, 1000, 2000, 3000)
    read, overtaking = UploadService._upload, []

    def read_and_overtaken(self, upload_id):
        found = read(self, upload_id)
        if not overtaking:
            overtaking.append("begun")
            overtaking.append(self.finish(upload_id=upload_id))
        return found

    monkeypatch.setattr(UploadService, "_upload", read_and_overtaken)

    assert uploads.finish(upload_id=begun.upload_id) == overtaking[-1]
    assert LargeFile.objects.count() == 1


def test_other_bytes_at_the_same_place_are_refused(uploads, begun, tmp_path):
    put(uploads, begun.upload_id, 0)
    kept = on_disk(tmp_path)

    with pytest.raises(Conflict, match="Other bytes"):
        uploads.put_chunk(upload_id=begun.upload_id, offset=0, content=bytes(CHUNK))

    assert on_disk(tmp_path) == kept


def test_of_two_who_bring_different_bytes_at_once_the_second_leaves_none(uploads, begun, monkeypatch, tmp_path):
    keep = UploadService._keep

    def keep_and_overtaken(self, chunk, content):
        keep(self, chunk, content)
        monkeypatch.setattr(UploadService, "_keep", keep)
        put(uploads, begun.upload_id, 0)

    monkeypatch.setattr(UploadService, "_keep", keep_and_overtaken)
    with pytest.raises(Conflict, match="Other bytes"):
        uploads.put_chunk(upload_id=begun.upload_id, offset=0, content=bytes(CHUNK))

    assert len(on_disk(tmp_path)) == 1


@pytest.mark.parametrize(
    ("offset", "content", "why"),
    [
        (1, bytes(CHUNK), "No chunk begins at 1"),
        (4000, b"x", "No chunk begins at 4000"),
        (0, bytes(CHUNK + 1), "must have 1000 bytes, not 1001"),
        (3000, bytes(CHUNK), "must have 17 bytes, not 1000"),
    ],
)
def test_a_chunk_that_fits_nowhere_is_refused(uploads, begun, tmp_path, offset, content, why):
    with pytest.raises(Invalid, match=why):
        uploads.put_chunk(upload_id=begun.upload_id, offset=offset, content=content)

    assert on_disk(tmp_path) == []


def test_a_file_that_is_not_the_one_announced_is_not_made(uploads, begun):
    put(uploads, begun.upload_id, 0, 1000, 2000, 3000, content=CONTENT[::-1])

    with pytest.raises(Conflict) as refused:
        uploads.finish(upload_id=begun.upload_id)

    assert refused.value.code == "hash_differs"
    assert not LargeFile.objects.exists()


def test_a_file_larger_than_allowed_is_refused_at_once(uploads):
    with pytest.raises(TooLarge, match="at most 100,000 bytes"):
        uploads.begin(conversation_id=a_conversation().conversation_id, byte_size=100_001)

    assert not Upload.objects.exists()


def test_a_file_so_large_that_there_were_too_many_chunks_has_larger_ones_and_an_empty_one_none(uploads):
    huge = replace(uploads, files=replace(uploads.files, policy=replace(uploads.files.policy, max_file_bytes=10**12)))

    begun = huge.begin(conversation_id=a_conversation().conversation_id, byte_size=10**12)
    empty = huge.begin(conversation_id=begun.conversation_id, byte_size=0)

    assert begun.chunks_missing == 100_000
    assert begun.chunk_bytes == 10_000_000
    assert len(begun.missing) == 100
    assert (empty.missing, huge.finish(upload_id=empty.upload_id).byte_size) == ((), 0)


def test_an_upload_that_is_given_up_leaves_nothing(uploads, begun, tmp_path):
    put(uploads, begun.upload_id, 0, 2000)

    last = uploads.abort(upload_id=begun.upload_id)

    assert last.missing == (1000, 3000)
    assert on_disk(tmp_path) == list((tmp_path / "uploads").iterdir()) == []
    assert not UploadChunk.objects.exists()
    with pytest.raises(NotFound):
        put(uploads, begun.upload_id, 1000)


def test_many_uploads_are_listed_with_as_many_statements_as_one(uploads, begun):
    conversation_id = begun.conversation_id
    with counted_statements() as for_one:
        uploads.list_uploads(conversation_id=conversation_id)
    others = [uploads.begin(conversation_id=conversation_id, byte_size=count * CHUNK) for count in (1, 2, 3)]
    put(uploads, begun.upload_id, 1000)
    put(uploads, others[2].upload_id, 0, 2000)

    with counted_statements() as for_many:
        listed = uploads.list_uploads(conversation_id=conversation_id)

    assert len(for_many) == len(for_one)
    assert [upload.upload_id for upload in listed] == [*(each.upload_id for each in reversed(others)), begun.upload_id]
    assert [upload.missing for upload in listed] == [(1000,), (0, 1000), (0,), (0, 2000, 3000)]


def test_only_what_nobody_goes_on_with_is_swept(uploads, begun, tmp_path):
    left = uploads.begin(conversation_id=begun.conversation_id, byte_size=CHUNK)
    done = uploads.begin(conversation_id=begun.conversation_id, byte_size=17)
    put(uploads, begun.upload_id, 0)
    put(uploads, left.upload_id, 0)
    put(uploads, done.upload_id, 0, content=CONTENT[:17])
    file = uploads.finish(upload_id=done.upload_id)
    long_ago = timezone.now() - timedelta(hours=25)
    Upload.objects.exclude(pk=begun.upload_id).update(touched_at=long_ago)

    assert uploads.sweep() == 2

    assert list(Upload.objects.values_list("pk", flat=True)) == [begun.upload_id]
    assert uploads.files.read(file_id=file.file_id) == CONTENT[:17]
    assert len(on_disk(tmp_path)) == 2
    assert uploads.sweep() == 0


def test_the_sweep_is_a_task(begun):
    Upload.objects.update(touched_at=timezone.now() - timedelta(hours=25))

    sweep_uploads.call_local()

    assert not Upload.objects.exists()


def test_what_a_killed_process_was_writing_is_swept_once_it_is_old(uploads, begun, tmp_path):
    put(uploads, begun.upload_id, 0)
    old, new = tmp_path / "unfinished" / "old", tmp_path / "unfinished" / "new"
    for path in (old, new):
        path.write_bytes(b"half a chu")
    os.utime(old, (0, 0))

    uploads.sweep()

    assert (old.exists(), new.exists()) == (False, True)
    assert uploads.get_upload(upload_id=begun.upload_id).chunks_received == 1


@pytest.mark.parametrize("end", [UploadService.finish, UploadService.abort])
def test_the_chunks_of_a_killed_process_are_swept(uploads, begun, tmp_path, monkeypatch, end):
    put(uploads, begun.upload_id, 0, 1000, 2000, 3000)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(WholeFileStorage, "delete", Mock(side_effect=KeyboardInterrupt))
        end(uploads, upload_id=begun.upload_id)
    (tmp_path / "uploads" / begun.upload_id / "0-not-recorded").touch()
    Upload.objects.update(touched_at=timezone.now() - timedelta(hours=25))

    uploads.sweep()

    assert not Upload.objects.exists() and list((tmp_path / "uploads").iterdir()) == []


def test_storage_that_fails_leaves_the_upload_as_it_was(uploads, begun, tmp_path):
    put(uploads, begun.upload_id, 0, 1000, 2000)
    directory, aside = tmp_path / "uploads" / begun.upload_id, tmp_path / "aside"
    directory.rename(aside)
    directory.write_text("a file where a directory is needed")

    with pytest.raises(Unavailable):
        put(uploads, begun.upload_id, 3000)
    record = uploads.get_upload(upload_id=begun.upload_id)
    directory.unlink()
    aside.rename(directory)
    put(uploads, begun.upload_id, 3000)

    assert record.missing == (3000,)
    assert uploads.files.read(file_id=uploads.finish(upload_id=begun.upload_id).file_id) == CONTENT


def test_a_chunk_whose_bytes_are_gone_is_told(uploads, begun, tmp_path):
    put(uploads, begun.upload_id, 0, 1000, 2000, 3000)
    path = next((tmp_path / "uploads" / begun.upload_id).glob("2-*"))
    path.unlink()

    with pytest.raises(Unavailable, match="at 2000"):
        uploads.finish(upload_id=begun.upload_id)

    assert not LargeFile.objects.exists()


def test_the_same_chunk_from_two_clients_and_two_who_finish_at_once(committed_db, tmp_path):
    uploads = a_service(tmp_path)
    begun = uploads.begin(conversation_id=a_conversation().conversation_id, byte_size=len(CONTENT))
    offsets = [0, 0, 0, 1000, 1000, 2000, 3000, 3000]

    def finish(_):
        try:
            return uploads.finish(upload_id=begun.upload_id).file_id
        except Unavailable:
            # The other one has taken the chunks away; asked again, it is told.
            return uploads.finish(upload_id=begun.upload_id).file_id

    at_once(lambda worker: put(uploads, begun.upload_id, offsets[worker]), workers=8)
    file_ids = set(at_once(finish, workers=4))

    assert len(file_ids) == 1
    assert uploads.files.read(file_id=file_ids.pop()) == CONTENT
    assert len(on_disk(tmp_path)) == 1

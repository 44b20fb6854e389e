from __future__ import annotations

import hashlib
import io
import itertools
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest
from django.core.files.base import ContentFile, File

from conversations.errors import Invalid, TooLarge, Unavailable
from conversations.files.large_files import SPOOL_BYTES, LargeFileService
from conversations.files.reading import MOST_TEXT_BYTES
from conversations.files.storage import WholeFileStorage
from conversations.models import Conversation, LargeFile
from conversations.policy import FilePolicy
from conversations.types import LargeFileRecord
from tests.factories import a_conversation, a_workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def files(tmp_path: Path) -> LargeFileService:
    return LargeFileService(storage=WholeFileStorage(location=tmp_path))


def a_file(files: LargeFileService, content: bytes | IO[bytes], **labels: str) -> LargeFileRecord:
    """A file of a new conversation."""
    return files.store(conversation_id=a_conversation().conversation_id, content=content, **labels)


def on_disk(root: Path) -> list[Path]:
    return [path.relative_to(root) for path in root.rglob("*") if path.is_file()]


def test_what_is_stored_comes_back_byte_for_byte(files):
    content = bytes(range(256)) * 100

    record = a_file(files, content, file_name="all.bin", mime_type="x/y")

    assert files.read(file_id=record.file_id) == content
    assert files.get(file_id=record.file_id) == record
    assert record.file_id.startswith("file_")
    assert (record.file_name, record.mime_type, record.byte_size) == ("all.bin", "x/y", len(content))
    assert record.content_hash == hashlib.sha256(content).hexdigest()
    assert record.created_at.tzinfo is not None


def test_a_stream_larger_than_memory_should_hold_comes_back(files):
    content = b"0123456789abcdef" * (SPOOL_BYTES // 16) + b"the end"

    record = a_file(files, io.BytesIO(content))

    assert files.read(file_id=record.file_id, offset=SPOOL_BYTES) == b"the end"
    assert record.byte_size == len(content)


def test_a_range_ends_where_the_file_ends(files):
    record = a_file(files, b"0123456789")

    def read(offset: int, length: int | None) -> bytes:
        return files.read(file_id=record.file_id, offset=offset, length=length)

    assert [read(0, None), read(3, 4), read(8, 5)] == [b"0123456789", b"3456", b"89"]
    assert [read(10, 1), read(99, None), read(2**80, 5), read(0, 0)] == [b""] * 4


def test_a_workspace_keeps_equal_bytes_once_and_a_conversation_the_same_file(files, tmp_path):
    one, other = a_conversation(), a_conversation()

    first, again, elsewhere, renamed = (
        files.store(conversation_id=each.conversation_id, content=content, file_name=name)
        for each, content, name in (
            (one, b"same", "a.txt"),
            (one, io.BytesIO(b"same"), "a.txt"),
            (other, b"same", "a.txt"),
            (one, b"same", "b.txt"),
        )
    )

    assert again == first
    assert len({record.file_id for record in (first, elsewhere, renamed)}) == LargeFile.objects.count() == 3
    assert len(on_disk(tmp_path)) == 1


def test_the_callers_name_never_reaches_the_disk(files, tmp_path):
    name = "../../../etc/passwd"

    record = a_file(files, b"root", file_name=name)

    assert record.file_name == name
    (path,) = on_disk(tmp_path)
    assert path.name == hashlib.sha256(b"root").hexdigest()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("label", ["file_name", "mime_type"])
@pytest.mark.parametrize("text", ["", "a\x00b", "\ud800", "n" * 501], ids=["empty", "nul", "surrogate", "long"])
def test_a_label_that_cannot_be_kept_is_refused_and_nothing_is_stored(files, tmp_path, label, text):
    with pytest.raises(Invalid, match=label):
        a_file(files, b"x", **{label: text})

    assert on_disk(tmp_path) == []


def test_bytes_that_cannot_be_written_leave_no_record(files, tmp_path):
    conversation = a_conversation()
    workspace = a_workspace().pk
    (tmp_path / str(workspace)).write_text("a file where a directory is needed")

    with pytest.raises(Unavailable):
        files.store(conversation_id=conversation.conversation_id, content=b"x")

    assert not LargeFile.objects.exists()


def test_bytes_that_are_gone_are_told_as_such(files, tmp_path):
    record = a_file(files, b"x")
    (tmp_path / record.storage_uri).unlink()

    with pytest.raises(Unavailable, match=record.file_id):
        files.read(file_id=record.file_id)


class BreaksOff(ContentFile):
    """A source of bytes that fails in the middle."""

    def chunks(self, chunk_size=None):
        yield b"half"
        raise OSError("the network is gone")


def test_a_file_whose_writing_broke_off_is_not_there_and_one_that_was_there_stays_whole(tmp_path):
    storage = WholeFileStorage(location=tmp_path)
    with pytest.raises(OSError, match="network"):
        storage.save("1/ab/abcd", BreaksOff(b""))
    assert on_disk(tmp_path) == []

    storage.save("1/ab/abcd", ContentFile(b"whole"))
    with pytest.raises(OSError, match="network"):
        storage.save("1/ab/abcd", BreaksOff(b""))

    assert storage.save("1/ab/abcd", File(io.BytesIO(b"whole"))) == "1/ab/abcd"
    assert (tmp_path / "1/ab/abcd").read_bytes() == b"whole"


def test_lines_come_as_text_and_say_where_to_go_on(files):
    text = "".join(f"line {n}\n" for n in range(1, 1001))
    record = a_file(files, text.encode())

    page = files.read_lines(file_id=record.file_id, first_line=998, line_count=2)
    rest = files.read_lines(file_id=record.file_id, first_line=page.next_line)
    beyond = files.read_lines(file_id=record.file_id, first_line=5000)

    assert (page.text, page.first_line, page.last_line, page.next_line) == ("line 998\nline 999\n", 998, 999, 1000)
    assert (rest.text, rest.next_line) == ("line 1000\n", None)
    assert (beyond.text, beyond.next_line, beyond.note) == ("", None, "The file has no line 5000.")
    assert (page.note, rest.note) == (None, None)


def test_pages_of_lines_are_the_file_however_long_its_lines_are(files):
    lines = [f"{n} " + "x" * (n * 2000) + "\n" for n in range(60)]
    record = a_file(files, "".join(lines).encode())

    read, at = "", 1
    while at is not None:
        page = files.read_lines(file_id=record.file_id, first_line=at, line_count=50)
        read, at = read + page.text, page.next_line
        assert len(page.text) <= MOST_TEXT_BYTES

    assert read == "".join(lines)


def test_a_line_longer_than_an_answer_is_cut_and_says_so(files):
    content = b"short\n" + b"y" * (2 * MOST_TEXT_BYTES) + b"\nlast"
    record = a_file(files, content)

    first = files.read_lines(file_id=record.file_id)
    long = files.read_lines(file_id=record.file_id, first_line=first.next_line)
    last = files.read_lines(file_id=record.file_id, first_line=long.next_line)

    assert (first.text, first.is_cut) == ("short\n", False)
    assert (len(long.text), long.is_cut) == (MOST_TEXT_BYTES, True)
    assert (last.text, last.next_line) == ("last", None)


def test_a_file_larger_than_allowed_is_refused_before_it_is_read_to_its_end(tmp_path):
    files = LargeFileService(
        storage=WholeFileStorage(location=tmp_path), policy=replace(FilePolicy(), max_file_bytes=5_000_000)
    )
    endless = itertools.repeat(b"x" * 1_000_000)

    with pytest.raises(TooLarge, match="5,000,000 bytes") as refused:
        files.keep(Conversation(pk=1, workspace_id=1), endless)

    assert refused.value.code == "file_too_large"
    assert on_disk(tmp_path) == []


def test_a_plain_text_is_told_in_its_own_sentences(files):
    text = "\n\n".join(f"Paragraph {n}: the harbour of Porto was rebuilt in {1800 + n} by Anna-{n}." for n in range(60))

    record = a_file(files, text.encode(), file_name="a.txt")

    told = record.exploration_summary
    gist = told.partition("in its own words:\n")[2]
    assert told.startswith("text, ")
    assert "the harbour of Porto was rebuilt in 18" in gist
    assert len(gist) < len(text) / 2
    assert record.mime_type == "text/plain"

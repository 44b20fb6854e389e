"""What an import refuses, and that whatever stops it leaves nothing half done."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest
from django.core.files.storage import default_storage

from conversations.errors import Conflict, Invalid
from conversations.files.large_files import LargeFileService
from conversations.models import AuditEntry, Conversation, Message
from conversations.types import NewMessage, NewPart, PartType, Role
from lcmsite.connections import connect
from tests.conversations.ledger.forging import Objects, bytes_of, changed
from tests.conversations.ledger.ledgers import another_database, exported, imported, objects_in, the_ledgers, verified
from tests.factories import a_conversation, a_workspace, say
from tests.flows.processes import start


def sessions() -> list[str]:
    rows = Conversation.objects.filter(workspace=a_workspace()).order_by("session_id")
    return list(rows.values_list("session_id", flat=True))


@pytest.fixture
def ledger(db, full_ledger) -> bytes:
    another_database()
    return full_ledger


def test_a_session_that_is_there_is_a_conflict(ledger, tmp_path):
    a_conversation("one", session_id="everything")
    before = Message.objects.count()

    with pytest.raises(Conflict, match="'everything' exists in this workspace already"):
        imported(ledger, tmp_path)

    assert Message.objects.count() == before


def test_sessions_that_are_there_can_be_left_alone(db, tmp_path):
    for name in ("a", "b", "c"):
        a_conversation("one", "two", session_id=name)
    ledger = exported()
    another_database()
    a_conversation("mine", session_id="b")
    a_conversation("theirs", session_id="c", workspace=a_workspace("somebody else's"))

    report = imported(ledger, tmp_path, skip_existing=True)

    assert [each.session_id for each in report.conversations] == ["a", "c"]
    assert report.left_alone == ("b",)
    assert sessions() == ["a", "b", "c"]


def test_another_name_is_for_one_conversation(db, tmp_path):
    a_conversation("one", session_id="a")
    a_conversation("one", session_id="b")

    with pytest.raises(Invalid, match="only one can get a new session id"):
        imported(exported(), tmp_path, session_id="copy")


def alter_two_messages(objects: Objects) -> None:
    for message in objects[2:4]:
        message["content"] += "!"


@pytest.mark.parametrize(
    ("change", "sentence", "code"),
    [
        (
            alter_two_messages,
            r"nothing was imported: line 3, .*\[content_hash_mismatch\], and",
            "ledger_does_not_verify",
        ),
        (changed("end", overrides={"fresh_tail_count": -1}), "fresh_tail_count", "invalid"),
        # A number that the database writes in another way.
        (changed("end", metadata={"b": 1e23}), "would have other end lines", "ledger_not_reproducible"),
        (changed("header", version=1), "unsupported_version", "ledger_does_not_verify"),
    ],
)
def test_a_ledger_that_cannot_be_imported_is_refused_and_nothing_is_written(
    ledger, objects, tmp_path, change, sentence, code
):
    change(objects)

    with pytest.raises(Invalid, match=sentence) as refused:
        imported(bytes_of(objects), tmp_path)

    assert refused.value.code == code
    assert sessions() == []


def test_settings_that_contradict_those_of_this_site_are_imported_as_they_were(db, settings, tmp_path):
    settings.LCM = {"hard_threshold": 0.99}
    a_conversation("one", "two", session_id="late", overrides={"context_threshold": 0.95})
    ledger = exported()
    another_database()
    settings.LCM = {}

    imported(ledger, tmp_path)

    assert Conversation.objects.get(session_id="late").overrides == {"context_threshold": 0.95}
    assert exported() == ledger


def test_what_fails_in_the_middle_leaves_nothing(ledger, tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("conversations.ledger.ledger_import.recount", fail)
    saved, save = [], default_storage.save
    monkeypatch.setattr(default_storage, "save", lambda path, file: saved.append(path) or save(path, file))

    with pytest.raises(OSError, match="disk is full"):
        imported(ledger, tmp_path)

    assert sessions() == [] and not AuditEntry.objects.exists()
    assert saved and not any(map(default_storage.exists, saved))


def test_conversations_before_the_one_that_fails_stay(db, tmp_path):
    a_conversation("one", "two", session_id="a")
    a_conversation("one", "two", session_id="b")
    objects = objects_in(exported())
    another_database()
    next(each for each in reversed(objects) if each["type"] == "end")["metadata"] = {"b": 1e23}

    with pytest.raises(Invalid, match="would have other end lines"):
        imported(bytes_of(objects), tmp_path)

    assert sessions() == ["a"]


IMPORT = """
import django, sys
django.setup()
from lcmsite.cli.program import run
sys.exit(run(["ledger", "import", sys.argv[1]]))
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_kill_9_at_any_moment_leaves_nothing_of_the_conversation_it_was_at(committed_db, tmp_path):
    for name in "abcdefgh":
        a_conversation(*(f"Message {n} of {name}. " * 50 for n in range(400)), session_id=name)
    ledger = exported()
    path = tmp_path / "all.jsonl"
    path.write_bytes(ledger)
    lengths = [each["message_count"] for each in objects_in(ledger) if each["type"] == "end"]
    another_database()

    for moment in range(4):
        process = start("-c", IMPORT, str(path))
        _wait_for_messages(process, moment * 300)
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = sessions()
        assert done == list("abcdefgh")[: len(done)]
        counted = Message.objects.filter(conversation__workspace=a_workspace()).count()
        assert counted == sum(lengths[: len(done)])
        another_database()

    assert the_ledgers().import_file(path).conversations[-1].session_id == "h"
    assert exported() == ledger


def _wait_for_messages(process: subprocess.Popen[bytes], tuples: int) -> None:
    """Until so many rows were inserted, committed or not, or the import is over."""
    with connect(autocommit=True) as server:
        query = "SELECT last_value FROM pg_sequences WHERE sequencename = 'messages_message_id_seq'"
        while process.poll() is None and (server.execute(query).fetchone()[0] or 0) < tuples + 3:
            time.sleep(0.01)


def a_conversation_and_one_that_names_its_file(*session_ids: str) -> list[int]:
    owner, namer = (a_conversation(session_id=each).conversation_id for each in session_ids)
    file = LargeFileService.from_settings().store(conversation_id=owner, content=b"x")
    named = NewPart(PartType.FILE, file_url=file.file_id)
    say(namer, NewMessage(Role.USER, parts=(named,)))
    return [owner, namer]


def test_a_file_of_another_conversation_may_be_named_and_is_imported_behind_it(db, tmp_path):
    first, second = map(exported, a_conversation_and_one_that_names_its_file("owner", "namer"))
    assert verified(second).is_clean
    another_database()
    imported(first, tmp_path, "somebody else's")

    with pytest.raises(Conflict, match="Import that conversation first") as refusal:
        imported(second, tmp_path)
    another_database()
    imported(first, tmp_path)
    imported(second, tmp_path)

    assert refusal.value.code == "file_not_there"
    assert exported(Conversation.objects.get(session_id="namer").pk) == second


def test_of_all_conversations_one_that_names_a_file_of_a_later_one_is_imported_too(db, tmp_path):
    a_conversation_and_one_that_names_its_file("b", "a")
    a_conversation("one", session_id="c")
    ledger = exported()
    another_database()

    report = imported(ledger, tmp_path)

    assert {each.session_id for each in report.conversations} == {"a", "b", "c"}
    assert exported() == ledger

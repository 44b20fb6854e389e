"""A ledger that broke off, or whose conversation has grown, is gone on with: as if it had been written in one go."""

from __future__ import annotations

import io

import pytest

from compaction.engine import CompactionEngine
from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Invalid, NotFound
from conversations.ledger.types import ExportReport
from conversations.models import AuditEntry, Message
from conversations.scope import Scope
from tests.conversations.ledger.ledgers import exported, the_ledgers
from tests.factories import a_conversation, a_workspace, say
from tests.integrity.breaking import breaking


def gone_on_with(written: bytes, conversation_id: int | None) -> bytes:
    return gone_on(written, conversation_id)[0]


def gone_on(written: bytes, conversation_id: int | None) -> tuple[bytes, ExportReport]:
    file = io.BytesIO(written)
    report = the_ledgers().resume(file, name="a ledger", conversation_id=conversation_id)
    return file.getvalue(), report


def grow(conversation_id: int) -> None:
    say(conversation_id, *(f"Later: the harbour master says {n}. " * 30 for n in range(12)))
    CompactionEngine.from_settings(Scope(a_workspace().pk)).compact(conversation_id=conversation_id)


@pytest.mark.thorough
def test_wherever_it_broke_off_it_becomes_whole(conversation_id):
    whole = exported(conversation_id)

    for length in range(0, len(whole), len(whole) // 23):
        assert gone_on_with(whole[:length], conversation_id) == whole
    assert gone_on_with(whole, conversation_id) == whole


def test_only_what_a_conversation_has_grown_by_is_appended(conversation_id):
    before = exported(conversation_id)
    grow(conversation_id)

    after, report = gone_on(before, conversation_id)

    assert exported(conversation_id) == after != before
    # What is in the file is not read again.
    assert report.continued_after == 2 + before.count(b'"type":"message"')


@pytest.mark.thorough
def test_an_export_of_all_that_broke_off_becomes_whole(conversation_id):
    for name in ("b", "a", "\u00e9", "C"):
        a_conversation("one", "two", session_id=name)
    whole = exported()

    for length in range(0, len(whole) - 1, max(300, len(whole) // 20)):
        assert gone_on_with(whole[:length], None) == whole


def test_a_whole_ledger_of_all_cannot_be_gone_on_with(conversation_id):
    with pytest.raises(Conflict, match="export all of them again"):
        gone_on_with(exported(), None)


@pytest.mark.parametrize("change", [grow, lambda id: erase_a_message(id), lambda id: a_conversation("one more")])
def test_an_export_of_all_whose_earlier_conversations_have_changed_is_refused(conversation_id, change):
    a_conversation("one", session_id="~")
    written = exported()[:-200]
    change(conversation_id)

    with pytest.raises(Conflict, match="have grown or were erased"):
        gone_on_with(written, None)


def alter_stored_messages(conversation_id: int) -> None:
    breaking("UPDATE messages SET chain_hash = sha256('') WHERE conversation_id = %s AND seq > 80", conversation_id)


def erase_a_message(conversation_id: int) -> None:
    AuditLog(Scope(a_workspace().pk, actor="operator")).record(Act.ERASE, conversation_id=conversation_id)
    act = AuditEntry.objects.latest("audit_id")
    Message.objects.filter(conversation_id=conversation_id, seq=3).update(content="", erased_by=act)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("change", "meanwhile", "error", "sentence"),
    [
        (lambda ledger: ledger.replace(b"harbour", b"Harbour", 1), None, Invalid, "line 3: .*line_hash_mismatch"),
        (lambda ledger: ledger.replace(b'"default"', b'"elsewhere"', 1), None, Invalid, "line_hash_mismatch"),
        (lambda ledger: exported(a_conversation("one").conversation_id), None, Conflict, "not of"),
        (bytes, alter_stored_messages, Conflict, "differs from the stored one"),
        (bytes, erase_a_message, Conflict, "erased since"),
    ],
    ids=["damaged", "of another workspace", "of another conversation", "other messages by now", "erased since"],
)
def test_a_file_that_is_not_of_this_conversation_is_refused(conversation_id, change, meanwhile, error, sentence):
    written = change(exported(conversation_id))
    if meanwhile is not None:
        meanwhile(conversation_id)

    with pytest.raises(error, match=sentence):
        gone_on_with(written, conversation_id)


def test_an_unknown_conversation_is_not_found(db):
    a_workspace()

    with pytest.raises(NotFound):
        gone_on_with(b"", 404)

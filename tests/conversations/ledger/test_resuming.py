"""A ledger that broke off, or whose conversation has grown, is gone on with: as if it had been written in one go."""

from __future__ import annotations

import io

import pytest

from compaction.engine import CompactionEngine
from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Invalid, NotFound
from conversations.models import AuditEntry, Message
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from tests.conversations.breaking import breaking
from tests.conversations.ledger.ledgers import a_full_conversation, exported, the_ledgers
from tests.factories import a_conversation, a_store, a_workspace


def gone_on_with(written: bytes, conversation_id: int | None) -> bytes:
    file = io.BytesIO(written)
    the_ledgers().resume(file, name="a ledger", conversation_id=conversation_id)
    return file.getvalue()


def grow(conversation_id: int) -> None:
    a_store().append_messages(
        conversation_id=conversation_id,
        messages=[NewMessage(Role.USER, f"Later: the harbour master says {n}. " * 30) for n in range(12)],
    )
    CompactionEngine.from_settings(Scope(a_workspace().pk)).compact(conversation_id=conversation_id)


@pytest.fixture
def conversation_id(db) -> int:
    return a_full_conversation()


def test_wherever_it_broke_off_it_becomes_whole(conversation_id):
    whole = exported(conversation_id)

    for length in range(0, len(whole), len(whole) // 23):
        assert gone_on_with(whole[:length], conversation_id) == whole
    assert gone_on_with(whole, conversation_id) == whole


def test_a_conversation_that_has_grown_is_appended_to(conversation_id):
    before = exported(conversation_id)
    grow(conversation_id)
    after = exported(conversation_id)

    assert gone_on_with(before, conversation_id) == after != before


def test_what_is_in_the_file_is_not_read_again(conversation_id):
    before = exported(conversation_id)
    grow(conversation_id)
    file = io.BytesIO(before)

    report = the_ledgers().resume(file, name="a ledger", conversation_id=conversation_id)

    assert report.continued_after == 2 + before.count(b'"type":"message"')


def test_an_export_of_all_that_broke_off_becomes_whole(db):
    for name in ("b", "a", "\u00e9", "C"):
        a_conversation("one", "two", session_id=name)
    whole = exported()

    for length in range(0, len(whole) - 1, 300):
        assert gone_on_with(whole[:length], None) == whole


def test_a_whole_ledger_of_all_cannot_be_gone_on_with(db):
    a_conversation("one")

    with pytest.raises(Conflict, match="export all of them again"):
        gone_on_with(exported(), None)


def test_a_file_that_does_not_verify_is_left_as_it_is(conversation_id):
    damaged = exported(conversation_id).replace(b"harbour", b"Harbour", 1)

    with pytest.raises(Invalid, match="line 3: .*line_hash_mismatch"):
        gone_on_with(damaged, conversation_id)


def test_the_ledger_of_another_conversation_is_refused(conversation_id):
    other = a_conversation("one").conversation_id

    with pytest.raises(Conflict, match="not of"):
        gone_on_with(exported(other), conversation_id)


def test_the_ledger_of_another_workspace_is_refused(conversation_id):
    foreign = exported(conversation_id).replace(b'"default"', b'"elsewhere"', 1)

    with pytest.raises(Invalid):
        gone_on_with(foreign, conversation_id)


def test_messages_that_are_other_ones_by_now_are_refused(conversation_id):
    before = exported(conversation_id)
    breaking("UPDATE messages SET chain_hash = sha256('') WHERE conversation_id = %s AND seq > 80", conversation_id)

    with pytest.raises(Conflict, match="differs from the stored one"):
        gone_on_with(before, conversation_id)


def test_a_file_that_still_has_what_was_erased_is_refused(conversation_id):
    before = exported(conversation_id)
    AuditLog(Scope(a_workspace().pk, actor="operator")).record(Act.ERASE, conversation_id=conversation_id)
    act = AuditEntry.objects.latest("audit_id")
    Message.objects.filter(conversation_id=conversation_id, seq=3).update(content="", erased_by=act)

    with pytest.raises(Conflict, match="erased since"):
        gone_on_with(before, conversation_id)


def test_an_unknown_conversation_is_not_found(db):
    a_workspace()

    with pytest.raises(NotFound):
        gone_on_with(b"", 404)

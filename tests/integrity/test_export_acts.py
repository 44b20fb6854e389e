"""Every export is on record: before its first line leaves, and when it ends, however it ends."""

from __future__ import annotations

import io

import pytest

from conversations.audit import Act, AuditLog
from conversations.errors import NotFound
from conversations.models import AuditEntry
from tests.conversations.ledger.ledgers import exported, objects_in, the_ledgers
from tests.factories import a_conversation


def exports() -> list[tuple[str, str, int | None]]:
    return list(
        AuditEntry.objects.filter(act__in=[Act.BEGIN_EXPORT, Act.EXPORT_LEDGER])
        .order_by("audit_id")
        .values_list("act", "target", "conversation_id")
    )


def the_last() -> AuditEntry:
    return AuditEntry.objects.filter(act=Act.EXPORT_LEDGER).latest("audit_id")


@pytest.mark.django_db
def test_an_export_is_an_act_with_counts_and_the_last_hash_and_no_text():
    conversation = a_conversation("a secret boat", "two", session_id="harbour")

    ledger = exported(conversation.conversation_id)

    assert exports() == [
        ("begin_export", "harbour", conversation.conversation_id),
        ("export_ledger", "harbour", conversation.conversation_id),
    ]
    begun, ended = AuditEntry.objects.order_by("audit_id")
    assert ended.detail == {
        **dict.fromkeys(("parts", "summaries", "session_summaries", "runs", "boundaries", "files", "references"), 0),
        "begun_by": begun.pk,
        "is_whole": True,
        "conversations": 1,
        "lines": 6,
        "continued_after": 0,
        "messages": 2,
        "line_hash": objects_in(ledger)[-1]["line_hash"],
    }
    assert begun.detail == {"with_files": True}
    assert begun.actor == ended.actor == "operator"


@pytest.mark.django_db
def test_an_export_of_all_and_one_that_goes_on_are_acts_too():
    conversation_id = a_conversation("one", session_id="harbour").conversation_id
    file = io.BytesIO()
    the_ledgers().export(file, name="all")
    part = io.BytesIO(file.getvalue()[:-200])

    the_ledgers().resume(part, name="all")

    assert part.getvalue() == file.getvalue()
    assert exports() == [("begin_export", "", None), ("export_ledger", "", None)] * 2
    assert the_last().detail["continued_after"] == 3 and the_last().detail["is_whole"]
    assert AuditLog().list_acts(conversation_id=conversation_id) == []


def test_a_reader_that_breaks_off_leaves_an_act_that_says_how_far_it_came(committed_db):
    conversation_id = a_conversation(*(f"message {n}" for n in range(20))).conversation_id
    lines = the_ledgers().lines(conversation_id=conversation_id)

    taken = [next(lines) for _ in range(10)]
    # Before anything is known of the end, that it began is on record.
    begun = exports()
    lines.close()

    assert [act for act, _, _ in begun] == ["begin_export"]
    assert [act for act, _, _ in exports()] == ["begin_export", "export_ledger"]
    detail = the_last().detail
    assert (detail["is_whole"], detail["lines"], detail["messages"]) == (False, 10, 8)
    assert detail["line_hash"] == objects_in(b"".join(taken))[-1]["line_hash"]


class FullDisk(io.BytesIO):
    def write(self, data) -> int:
        if self.tell() > 2_000:
            raise OSError(28, "No space left on device")
        return super().write(data)


@pytest.mark.django_db
def test_an_export_that_fails_leaves_an_act_that_says_so():
    conversation_id = a_conversation(*(f"message {n}" for n in range(20))).conversation_id

    with pytest.raises(OSError, match="No space left"):
        the_ledgers().export(FullDisk(), name="a file", conversation_id=conversation_id)

    assert (the_last().detail["is_whole"], the_last().detail["conversations"]) == (False, 0)


@pytest.mark.django_db
def test_what_is_refused_or_only_verified_is_no_export():
    with pytest.raises(NotFound):
        list(the_ledgers().lines(conversation_id=99_999))
    assert the_ledgers().verify_live().is_clean

    assert exports() == []

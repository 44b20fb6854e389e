"""Who did what is written down with the deed, and stays."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from conversations.audit import Act, AuditLog
from conversations.errors import NotFound
from conversations.models import AuditEntry
from conversations.scope import Scope
from tests.factories import a_conversation, a_workspace


@pytest.mark.django_db
def test_an_act_names_who_did_it_and_to_what():
    conversation_id = a_conversation("one").conversation_id
    log = AuditLog(Scope(a_workspace().pk, actor="key 7"))

    log.record(Act.QUARANTINE, conversation_id=conversation_id, target="msg_1", detail={"count": 1})

    (entry,) = log.list_acts()
    assert (entry.actor, entry.act, entry.target) == ("key 7", "quarantine", "msg_1")
    assert (entry.workspace_id, entry.conversation_id) == (a_workspace().pk, conversation_id)
    assert entry.detail == {"count": 1}


@pytest.mark.django_db
def test_acts_come_newest_first_a_page_at_a_time_and_by_what_they_were_done_to():
    log = AuditLog(Scope(a_workspace().pk))
    held = log.record(Act.QUARANTINE, target="msg_1").pk
    other = log.record(Act.QUARANTINE, target="msg_11").pk
    released = log.record(Act.RELEASE, target="msg_1").pk

    def ids(**wanted: Any) -> list[int]:
        return [entry.audit_id for entry in log.list_acts(**wanted)]

    assert ids() == [released, other, held]
    assert (ids(limit=2), ids(limit=2, before_id=other)) == ([released, other], [held])
    assert ids(target="msg_1") == [released, held]
    assert ids(target="msg_1", act=Act.QUARANTINE) == ids(target="msg_1", before_id=released) == [held]
    assert ids(target="msg_\x00") == ids(act=Act.THAW) == []


@pytest.mark.django_db
def test_acts_of_another_workspace_are_not_told():
    theirs = a_conversation("one", workspace=a_workspace("theirs"))
    AuditLog(Scope(a_workspace("theirs").pk)).record(Act.ARCHIVE, conversation_id=theirs.conversation_id)
    ours = AuditLog(Scope(a_workspace().pk))

    assert ours.list_acts() == []
    with pytest.raises(NotFound):
        ours.list_acts(conversation_id=theirs.conversation_id)


def test_a_deed_that_fails_leaves_no_act(committed_db):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        AuditLog().record(Act.BACKUP)
        _ = 1 / 0

    with pytest.raises(RuntimeError, match="in the transaction"):
        AuditLog().record(Act.BACKUP)

    assert not AuditEntry.objects.exists()

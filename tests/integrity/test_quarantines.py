"""What is withheld by hand: any thing that can be damaged, once, with a record of who did it."""

from __future__ import annotations

import pytest

from conversations.audit import AuditLog
from conversations.errors import Conflict, Invalid, NotFound
from conversations.models import Conversation
from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from integrity.repairs.quarantines import Quarantines
from tests.factories import a_workspace


@pytest.fixture
def quarantines() -> Quarantines:
    return Quarantines(Scope(a_workspace().pk, actor="key 7"))


def test_a_thing_is_withheld_and_released_and_both_are_on_record(conversation, quarantines):
    held = quarantines.quarantine(id=conversation.top.summary_id, reason="It lies.")
    assert Conversation.objects.get(pk=conversation.id).quarantined == 1
    assert IntegrityChecker.from_settings().run().is_clean

    released = quarantines.release(quarantine_id=held.quarantine_id)

    assert (held.reason, held.released_at) == ("It lies.", None)
    assert released.released_at is not None
    assert quarantines.list_quarantines() == []
    assert quarantines.list_quarantines(conversation_id=conversation.id, released=True) == [released]
    assert Conversation.objects.get(pk=conversation.id).quarantined == 0
    acts = AuditLog(quarantines.scope).list_acts()
    assert [(entry.act, entry.actor, entry.target) for entry in acts] == [
        ("release", "key 7", conversation.top.summary_id),
        ("quarantine", "key 7", conversation.top.summary_id),
    ]


def test_every_kind_of_thing_can_be_withheld(conversation, quarantines):
    part = f"part_{conversation.message_ids[37]}_0"

    for id in (conversation.message(30), conversation.late.summary_id, part):
        quarantines.quarantine(id=id, reason="why")

    assert [each.target for each in reversed(quarantines.list_quarantines())] == [
        conversation.message(30),
        conversation.late.summary_id,
        part,
    ]


def test_a_thing_is_withheld_once(conversation, quarantines):
    held = quarantines.quarantine(id=conversation.message(30), reason="why")

    with pytest.raises(Conflict):
        quarantines.quarantine(id=conversation.message(30), reason="why")

    quarantines.release(quarantine_id=held.quarantine_id)
    with pytest.raises(Conflict):
        quarantines.release(quarantine_id=held.quarantine_id)


@pytest.mark.parametrize("id", ["run_1", "msg_", "msg_1; DROP", ""])
def test_what_is_no_id_of_such_a_thing_is_refused(conversation, quarantines, id):
    with pytest.raises(Invalid):
        quarantines.quarantine(id=id, reason="why")


@pytest.mark.parametrize("id", ["msg_999999999", "sum_0", "part_0", "file_0", "msg_x"])
def test_what_is_not_there_cannot_be_withheld(conversation, quarantines, id):
    with pytest.raises(NotFound):
        quarantines.quarantine(id=id, reason="why")


def test_a_stranger_withholds_and_releases_nothing(conversation, quarantines):
    held = quarantines.quarantine(id=conversation.message(30), reason="why")
    stranger = Quarantines(Scope(a_workspace("another").pk))

    with pytest.raises(NotFound):
        stranger.quarantine(id=f"part_{conversation.message_ids[37]}_0", reason="why")
    with pytest.raises(NotFound):
        stranger.release(quarantine_id=held.quarantine_id)
    assert stranger.list_quarantines() == []

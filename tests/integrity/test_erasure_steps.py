"""Nothing is erased that was not previewed, confirmed letter by letter, found unchanged, and the caller's own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from compaction.engine import CompactionEngine
from conversations.audit import AuditLog
from conversations.errors import Conflict, Invalid, NotFound
from conversations.models import (
    Conversation,
    Summary,
)
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from tests.factories import a_conversation, a_store, a_workspace
from tests.integrity.erasing import (
    SECRET,
    a_secret_conversation,
    assert_clean,
    erased,
    everything_stored,
    message,
)

pytestmark = pytest.mark.django_db


def test_a_preview_tells_what_would_go_and_touches_nothing(erasures):
    conversation_id = a_secret_conversation()
    before = everything_stored()

    preview = erasures.preview_erasure(conversation_id=conversation_id, from_seq=20, to_seq=22)

    holding = Summary.objects.filter(first_seq__lte=22, last_seq__gte=20)
    assert (preview.message_count, preview.first_seq, preview.last_seq) == (3, 20, 22)
    assert preview.token_count == sum(message(conversation_id, seq).token_count for seq in (20, 21, 22))
    assert {each.summary_id for each in preview.summaries} == set(holding.values_list("pk", flat=True))
    assert preview.summary_count == len(preview.summaries) >= 1
    assert preview.active_summaries >= 1
    assert preview.confirmation == f"erase 3 messages of conversation {conversation_id} for good"
    assert before.count(SECRET) == everything_stored().count(SECRET)
    [act] = AuditLog().list_acts(act="preview_erasure")
    assert (act.actor, act.target, act.detail["messages"]) == ("key 7", preview.erasure_id, 3)


def test_without_the_confirmation_letter_by_letter_nothing_is_erased(erasures):
    conversation_id = a_secret_conversation()
    preview = erasures.preview_erasure(conversation_id=conversation_id, from_seq=20, to_seq=22)
    before = everything_stored().count(SECRET)

    for typed in ("", "yes", preview.confirmation.upper(), f"{preview.confirmation} "):
        with pytest.raises(Invalid) as refusal:
            erasures.erase(erasure_id=preview.erasure_id, confirmation=typed)
        assert refusal.value.code == "not_confirmed"

    assert everything_stored().count(SECRET) == before


def test_an_erasure_is_carried_out_once(erasures):
    preview, _ = erased(erasures, a_secret_conversation(), from_seq=20, to_seq=22)

    with pytest.raises(Conflict) as refusal:
        erasures.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)

    assert refusal.value.code == "erasure_done"


def test_a_preview_expires(erasures):
    conversation_id = a_secret_conversation()
    preview = erasures.preview_erasure(conversation_id=conversation_id, from_seq=20, to_seq=22)
    later = replace(erasures, now=lambda: datetime.now(UTC) + timedelta(minutes=61))

    with pytest.raises(Conflict) as refusal:
        later.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)

    assert refusal.value.code == "erasure_expired"
    assert message(conversation_id, 20).content


def _a_summary_is_made(conversation_id: int) -> None:
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)


def _a_part_is_added(conversation_id: int) -> None:
    a_store().create_message_parts(
        message_id=message(conversation_id, 20).message_id, parts=[NewPart(PartType.TEXT, text_content="more")]
    )


@pytest.mark.parametrize("change", [_a_summary_is_made, _a_part_is_added])
def test_if_anything_has_changed_since_the_preview_nothing_is_erased(erasures, change):
    conversation_id = a_secret_conversation(compacted=False)
    preview = erasures.preview_erasure(conversation_id=conversation_id, from_seq=20, to_seq=22)

    change(conversation_id)

    with pytest.raises(Conflict) as refusal:
        erasures.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)
    assert refusal.value.code == "erasure_outdated"
    assert SECRET in message(conversation_id, 20).content


def test_what_moves_to_the_cold_tier_and_what_is_appended_changes_nothing_about_it(erasures):
    conversation_id = a_secret_conversation()
    preview = erasures.preview_erasure(conversation_id=conversation_id, from_seq=20, to_seq=22)

    a_store().append_messages(conversation_id=conversation_id, messages=[NewMessage(Role.USER, "and then")])
    Retention.from_settings().archive(conversation_id=conversation_id)
    erasures.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)

    assert SECRET not in everything_stored()
    assert Conversation.objects.get().cold_messages == 58
    assert_clean()


def test_what_was_erased_is_not_archived_and_the_rest_is_thawed_as_it_was(erasures):
    conversation_id = a_secret_conversation()
    erased(erasures, conversation_id, from_seq=20, to_seq=22)
    before = a_store().list_messages(conversation_id=conversation_id)
    service = Retention.from_settings()

    cold = service.archive(conversation_id=conversation_id)
    while_cold = a_store().list_messages(conversation_id=conversation_id)
    service.thaw(conversation_id=conversation_id)

    assert cold.messages == len(before) - 3
    assert while_cold == before
    assert a_store().list_messages(conversation_id=conversation_id) == before


@pytest.mark.parametrize(
    "what",
    [
        {"from_seq": 20},
        {"to_seq": 20},
        {"from_seq": 22, "to_seq": 20},
        {"from_seq": 1000, "to_seq": 2000},
    ],
)
def test_what_names_nothing_is_refused(erasures, what):
    conversation_id = a_secret_conversation(compacted=False)

    with pytest.raises(Invalid):
        erasures.preview_erasure(conversation_id=conversation_id, **what)


def test_what_is_erased_already_is_not_erased_again(erasures):
    conversation_id = a_secret_conversation()
    erased(erasures, conversation_id, from_seq=20, to_seq=22)

    more = erasures.preview_erasure(conversation_id=conversation_id, from_seq=21, to_seq=23)
    with pytest.raises(Invalid) as refusal:
        erasures.preview_erasure(conversation_id=conversation_id, from_seq=20, to_seq=22)

    assert more.message_count == 1
    assert refusal.value.code == "nothing_to_erase"


def test_a_stranger_erases_nothing_and_learns_nothing(erasures):
    conversation_id = a_secret_conversation(compacted=False)
    preview = erasures.preview_erasure(conversation_id=conversation_id, from_seq=20, to_seq=22)
    stranger = Erasures.from_settings(Scope(a_workspace("elsewhere").pk))
    other = a_conversation("theirs", workspace=a_workspace("elsewhere")).conversation_id

    with pytest.raises(NotFound):
        stranger.preview_erasure(conversation_id=conversation_id, from_seq=20, to_seq=22)
    with pytest.raises(NotFound):
        stranger.preview_erasure(conversation_id=other, message_ids=[message(conversation_id, 20).message_id])
    with pytest.raises(NotFound):
        stranger.erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)

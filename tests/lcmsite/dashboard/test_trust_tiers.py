"""Quarantine, retention, storage and the tiers of a conversation in the browser."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
from django.test import Client

from conversations.models import Conversation, Quarantine, Workspace
from integrity.policy import MOST_DAYS, RetentionPolicy
from integrity.retention.tiers import Retention
from tests.compacting import another_session_compacts
from tests.factories import a_conversation, a_store
from tests.integrity.breaking import breaking
from tests.lcmsite.dashboard.visiting import HOSTILE, as_part, page_of

QUARANTINE = "/w/default/quarantine/"
RETENTION = "/w/default/retention/"


@pytest.fixture
def conversation_id(db: None) -> int:
    return a_conversation(*(f"message {n} about the harbour" for n in range(9)), title=HOSTILE).conversation_id


@pytest.fixture
def message_id(conversation_id: int) -> str:
    return f"msg_{a_store().list_messages(conversation_id=conversation_id)[4].message_id}"


def withheld(admin: Client, id: str, reason: str = HOSTILE) -> Quarantine:
    assert admin.post(f"{QUARANTINE}new/", {"id": id, "reason": reason}).status_code == 302
    return Quarantine.objects.get()


def test_pages_of_a_workspace_with_nothing_in_it_say_what_only_admins_may(reader, operator, admin):
    for browser, may in ((reader, False), (operator, False), (admin, True)):
        for path in (QUARANTINE, RETENTION):
            page = page_of(browser, path)
            assert ("dmins of the workspace may" in page or "Only admins" in page) != may


def test_a_quarantined_message_is_listed_and_shown_without_its_text_and_an_admin_may_read_it(
    admin, reader, message_id, conversation_id
):
    withheld(admin, message_id)
    text, path = "message 4 about the harbour", f"/w/default/messages/{message_id}/"

    transcript = page_of(admin, f"/w/default/conversations/{conversation_id}/")
    of_reader, shown = page_of(reader, path), page_of(admin, f"{path}?quarantined=shown")

    assert text not in transcript and ">quarantined</a>" in transcript
    assert text not in of_reader and "Read it as" not in of_reader
    assert "its text is withheld" in of_reader
    assert "Read it as" in page_of(admin, path) and text in shown
    assert reader.get(f"{path}?quarantined=shown").status_code == 403

    page = page_of(admin, QUARANTINE)
    own = page_of(admin, f"/w/default/conversations/{conversation_id}/trust/")
    assert '<span class="badge badge-bad"' in page_of(admin, "/w/default/conversations/")
    assert ">quarantined</span>" in own and "alert(1)" in own
    assert f"integrity/place/?id={message_id}" in page and "I have checked" in page
    assert "alert(1)" in page and HOSTILE not in page


def test_only_who_has_said_that_it_is_right_lets_a_thing_go(admin, message_id):
    held = withheld(admin, message_id)

    silent = admin.post(f"{QUARANTINE}{held.pk}/release/")
    held.refresh_from_db()
    assert silent.status_code == 400 and "Not released" in silent.content.decode()
    assert held.released_at is None

    said = admin.post(f"{QUARANTINE}{held.pk}/release/", {"is_right": "yes"}, follow=True)
    held.refresh_from_db()
    assert f"{message_id} was released; models see it again" in said.content.decode()
    assert held.released_at is not None
    assert message_id not in page_of(admin, QUARANTINE)
    assert "released" in page_of(admin, f"{QUARANTINE}?released=yes")

    again = admin.post(f"{QUARANTINE}{held.pk}/release/", {"is_right": "yes"})
    assert again.status_code == 409 and "was already released" in again.content.decode()


def test_what_cannot_be_withheld_is_told_and_the_form_keeps_its_words(admin):
    for given, status in (({"id": HOSTILE, "reason": "x"}, 400), ({"id": "msg_999999", "reason": "x"}, 404), ({}, 400)):
        answer = admin.post(f"{QUARANTINE}new/", given)
        assert answer.status_code == status
        assert 'role="alert"' in answer.content.decode() and HOSTILE not in answer.content.decode()
    assert not Quarantine.objects.exists()


def test_a_rule_is_set_by_an_admin_and_one_that_is_none_is_told(admin):
    for given, days, shown in (
        ({"rule": "never"}, MOST_DAYS, "never"),
        ({"rule": "site"}, None, "never"),
        ({"rule": "days", "days": " 30 "}, 30, "30 days"),
    ):
        assert admin.post(f"{RETENTION}rule/", given).status_code == 302
        assert Workspace.objects.get().cold_after_days == days
        assert f'<p class="figure">{shown}</p>' in page_of(admin, RETENTION)

    for none in ("", "0", "-3", "99999", "9" * 400, HOSTILE, "³"):
        answer = admin.post(f"{RETENTION}rule/", {"rule": "days", "days": none})
        assert answer.status_code == 400 and 'role="alert"' in answer.content.decode()
        assert HOSTILE not in answer.content.decode()
    assert Workspace.objects.get().cold_after_days == 30


def test_what_everything_takes_up_is_told_by_tier(admin, conversation_id):
    before = as_part(admin, f"{RETENTION}storage/")
    admin.post(f"/w/default/conversations/{conversation_id}/archive/")
    after = as_part(admin, f"{RETENTION}storage/")

    assert "9 messages" in before and "0 compressed blocks" in before
    assert "1 compressed block" in after and "saved" in after and "<html" not in after


def test_a_conversation_goes_cold_and_comes_back_and_says_so_everywhere(admin, conversation_id):
    path = f"/w/default/conversations/{conversation_id}/"
    headers = {"HX-Request": "true"}

    moved = admin.post(f"{path}archive/", headers=headers).content.decode()
    assert "9 messages moved to the cold tier" in moved and "load delay" not in moved
    assert "9 of 9 messages are cold" in page_of(admin, f"{path}trust/")
    assert all(">cold</span>" in page_of(admin, each) for each in (path, "/w/default/conversations/"))
    a_conversation("newer", title="Newer")
    coldest_first = page_of(admin, "/w/default/conversations/?sort=cold_messages")
    assert coldest_first.index("alert(1)") < coldest_first.index("Newer")

    back = admin.post(f"{path}thaw/", headers=headers).content.decode()
    assert "moved to the hot tier" in back and "0 are cold now" in back
    assert "All messages are hot" in page_of(admin, f"{path}trust/")
    assert ">cold</span>" not in page_of(admin, "/w/default/conversations/")

    nothing = admin.post(f"{path}thaw/", headers=headers).content.decode()
    assert "Nothing was left to move" in nothing


def test_a_move_that_takes_longer_goes_on_by_itself(admin, monkeypatch):
    conversation_id = a_conversation(*(f"some words about boats {n} " * 40 for n in range(400))).conversation_id
    # Each look at the clock takes longer than one request may.
    clock = itertools.count(0.0, 3_600.0)
    hurried = partial(Retention, policy=RetentionPolicy(), clock=lambda: next(clock))
    monkeypatch.setattr(Retention, "from_settings", lambda scope: hurried(scope=scope))
    path = f"/w/default/conversations/{conversation_id}/archive/"

    first = admin.post(path, headers={"HX-Request": "true"}).content.decode()
    without_script = admin.post(path, follow=True).content.decode()

    cold = Conversation.objects.get(pk=conversation_id).cold_messages
    assert "More is being moved" in first and f'hx-post="{path}" hx-trigger="load' in first
    assert 0 < cold < 400 and "Repeat to move the rest." in without_script


def test_a_conversation_that_is_being_compacted_is_not_moved_and_says_so(admin, conversation_id):
    path = f"/w/default/conversations/{conversation_id}/archive/"

    with another_session_compacts(conversation_id):
        piece = admin.post(path, headers={"HX-Request": "true"})
        page = admin.post(path, follow=True).content.decode()

    assert piece.status_code == 409 and "Archive (make cold)" in piece.content.decode()
    assert all("is being compacted already" in each for each in (piece.content.decode(), page))
    assert not Conversation.objects.get(pk=conversation_id).cold_messages


def test_what_is_damaged_stays_and_is_named(admin, conversation_id, message_id):
    breaking("UPDATE messages SET content = 'x' WHERE message_id = %s", int(message_id[4:]))

    moved = admin.post(
        f"/w/default/conversations/{conversation_id}/archive/", headers={"HX-Request": "true"}
    ).content.decode()

    assert "does not match its hash" in moved and message_id in moved

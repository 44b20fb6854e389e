"""Erasing for good in the browser: said plainly, typed out, done once, on record; and by admins alone."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from compaction.engine import CompactionEngine
from conversations.files.large_files import LargeFileService
from conversations.models import Conversation, Message
from integrity.models import Erasure
from tests.factories import a_conversation, a_store, say
from tests.lcmsite.dashboard.visiting import HOSTILE, shown_links

TOMBSTONES = "/w/default/erasures/"
WORDS = "There was some talk about the harbour and its boats. " * 12


@pytest.fixture(scope="module")
def conversation_id(module_rows: None) -> int:
    conversation_id = a_conversation(*(f"{WORDS} {n}" for n in range(40)), title=HOSTILE).conversation_id
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    return conversation_id


@pytest.fixture
def path(conversation_id: int) -> str:
    return f"/w/default/conversations/{conversation_id}/erasure/"


def filled(page: str) -> dict[str, str]:
    """What the form of a preview would send, were it sent as it is."""
    return {
        html.unescape(name): html.unescape(value)
        for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.partition("<main")[2])
        if name != "csrfmiddlewaretoken"
    }


def phrase(page: str) -> str:
    return html.unescape(page.split('<code id="phrase">')[1].split("</code>")[0])


def previewed(admin: Client, path: str, **given: str) -> str:
    answer = admin.post(f"{path}preview/", given)
    assert answer.status_code == 200
    return answer.content.decode()


def erased(conversation_id: int) -> int:
    return Message.objects.filter(conversation_id=conversation_id, erased_by__isnull=False).count()


def test_a_preview_says_all_that_would_go_and_without_the_words_it_is_shown_again(admin, path, conversation_id):
    page = previewed(admin, path, from_seq="3", to_seq="5")

    assert '<div class="figure">3</div>messages' in page
    assert "lose" in page and "in the context and will be regenerated from the remaining content" in page
    assert "The content cannot be restored" in page and "Older backups and exported ledgers" in page
    assert phrase(page) == f"erase 3 messages of conversation {conversation_id} for good"
    assert "data-asks=" in page
    for typed in ("", "erase 3 messages", HOSTILE):
        answer = admin.post(f"{path}execution/", {**filled(page), "confirmation": typed})
        again = answer.content.decode()
        assert answer.status_code == 400 and 'role="alert"' in again and HOSTILE not in again
        assert phrase(again) == phrase(page) and filled(again)["from_seq"] == "3"
    assert erased(conversation_id) == 0


def test_a_preview_links_conversations_that_keep_the_same_texts(admin, path):
    copies = a_conversation(f"{WORDS} 3", session_id=f"a copy {HOSTILE}").conversation_id

    page = previewed(admin, path, from_seq="3", to_seq="5")

    assert HOSTILE not in page
    assert "Other conversations with the same texts" in page and f"/conversations/{copies}/" in page


def test_what_was_typed_letter_by_letter_is_erased_and_on_record(admin, path, conversation_id):
    page = previewed(admin, path, from_seq="3", to_seq="5")

    done = admin.post(f"{path}execution/", {**filled(page), "confirmation": phrase(page)}).content.decode()

    assert "Erased for good" in done and "3 messages" in done and "being regenerated" in done
    assert erased(conversation_id) == 3
    transcript = admin.get(f"/w/default/conversations/{conversation_id}/").content.decode()
    assert transcript.count(">erased</span>") == 3
    record = admin.get(TOMBSTONES).content.decode()
    assert "user a-admin" in record and "from 3" in record
    assert f"/w/default/conversations/{conversation_id}/?seq=3" in shown_links(record)


def test_what_was_outdated_or_is_done_is_previewed_anew_or_told(admin, path, conversation_id):
    outdated = previewed(admin, path, is_whole="yes")
    say(conversation_id, "one more")
    given = {**filled(outdated), "confirmation": phrase(outdated)}

    answer = admin.post(f"{path}execution/", given)
    again = answer.content.decode()

    assert answer.status_code == 409 and "The conversation has changed since the preview" in again
    assert '<div class="figure">41</div>' in again and erased(conversation_id) == 0
    given = {**filled(again), "confirmation": phrase(again)}
    Erasure.objects.filter(pk=given["erasure_id"]).update(expires_at="2026-01-01T00:00Z")
    answer = admin.post(f"{path}execution/", given)
    assert answer.status_code == 409 and "has expired" in answer.content.decode()
    given = filled(answer.content.decode()) | {"confirmation": phrase(answer.content.decode())}
    answers = [admin.post(f"{path}execution/", given) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 409] and erased(conversation_id) == 41
    assert "was already carried out" in answers[1].content.decode()


def test_all_of_it_is_erased_with_its_title(admin, path, conversation_id):
    whole = previewed(admin, path, is_whole="yes")

    assert "The whole conversation would be erased" in whole
    admin.post(f"{path}execution/", {**filled(whole), "confirmation": phrase(whole)})
    assert erased(conversation_id) == 40
    assert Conversation.objects.get(pk=conversation_id).title is None


def test_what_cannot_be_meant_is_told_and_the_form_keeps_its_words(admin, path):
    for given, why in (
        ({"from_seq": HOSTILE, "to_seq": "-3"}, "from_seq"),
        ({"message_ids": "msg_987654321"}, "There is no message"),
        ({"file_ids": "file_none"}, "file_none"),
        ({"is_whole": "yes", "from_seq": "3", "to_seq": "5"}, "not both"),
        ({"from_seq": " "}, "Choose messages, files or everything"),
    ):
        answer = admin.post(f"{path}preview/", given)
        page = answer.content.decode()
        assert answer.status_code in (400, 404)
        assert why in page and HOSTILE not in page and "What do you want to erase?" in page
        assert html.escape(next(iter(given.values()))) in page
    assert not Erasure.objects.exists()


def test_messages_and_files_are_named_by_their_ids(admin, path, conversation_id):
    file = LargeFileService.from_settings().store(conversation_id=conversation_id, content=b"bytes", file_name=HOSTILE)
    ids = [message.message_id for message in a_store().list_messages(conversation_id=conversation_id)[:2]]

    page = previewed(admin, path, message_ids=f"msg_{ids[0]}, {ids[1]}", file_ids=file.file_id)

    assert phrase(page) == f"erase 2 messages and 1 file of conversation {conversation_id} for good"
    assert f"/w/default/files/{file.file_id}/" in shown_links(page)

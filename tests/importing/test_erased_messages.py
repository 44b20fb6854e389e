"""Files with messages that were erased here: what was erased is not stored again, and what is new is."""

from __future__ import annotations

import copy
import json

import pytest

from conversations.models import Conversation, JournalEntry, LargeFile, Message
from integrity.retention.erasure import Erasures
from tests.importing import host_files as files
from tests.integrity.erasing import erased

pytestmark = pytest.mark.django_db


@pytest.fixture
def imported(imported):
    """Imports bytes as a file of this name; how many messages were stored."""
    return lambda *given: sum(each["created"] for each in imported(*given)["conversations"])


def erase(conversation_id, **what):
    erased(Erasures.from_settings(), conversation_id, **what)


def heads():
    return [(each.session_id, each.next_seq, each.head_seq) for each in Conversation.objects.order_by("pk")]


@pytest.mark.parametrize("program", files.FILES)
def test_no_erased_message_of_any_program_is_stored_again(imported, program):
    name, content = files.FILES[program]
    imported(name, content)
    before = heads()
    for conversation in Conversation.objects.all():
        last = conversation.next_seq - 1
        erase(conversation.pk, from_seq=1, to_seq=1)
        if last > 1:
            erase(conversation.pk, from_seq=last, to_seq=last)

    created = imported(name, content)

    assert (created, heads()) == (0, before)


def test_no_row_of_an_erased_message_comes_into_the_journal_again(imported):
    document = copy.deepcopy(files.GEMINI)
    document["messages"][2]["own"] = "y" * 70_000
    imported("gem.json", json.dumps(document).encode())
    erase(Conversation.objects.get().pk, from_seq=2, to_seq=2)
    document["messages"][2]["content"] = "It is 5433, as a.py says."

    created = imported("gem.json", json.dumps(document).encode())

    assert (created, JournalEntry.objects.count()) == (0, 1)


@pytest.mark.parametrize("first", [1, 3, 9])
def test_a_file_that_grows_after_an_erasure_is_imported_on(imported, first):
    def rows(count):
        # Every message says the same as the one four before it.
        lines = [{"role": "user", "content": f"message {number % 4}", "session_id": "a"} for number in range(count)]
        return "".join(json.dumps(line) + "\n" for line in lines).encode()

    imported("growing.jsonl", rows(10))
    [conversation] = Conversation.objects.all()
    erase(conversation.pk, from_seq=first, to_seq=first + 1)

    created = [imported("growing.jsonl", rows(count)) for count in (10, 15, 15)]

    assert created == [0, 5, 0]
    texts = list(Message.objects.order_by("seq").values_list("content", flat=True))
    expected = [f"message {number % 4}" for number in range(15)]
    expected[first - 1 : first + 1] = "", ""
    assert texts == expected


def test_a_long_text_that_was_moved_to_a_file_is_not_stored_again(imported, settings):
    settings.LCM = {"large_file_tokens": 2000}
    rows = [{"role": "user", "content": text, "session_id": "a"} for text in ("short", "harbour " * 3000, "short")]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    imported("long.jsonl", content)
    [conversation] = Conversation.objects.all()
    assert LargeFile.objects.filter(conversation=conversation).exists()
    erase(conversation.pk, from_seq=2, to_seq=2)

    created = imported("long.jsonl", content + json.dumps({**rows[0], "content": "more"}).encode() + b"\n")

    assert (created, Message.objects.count()) == (1, 4)


@pytest.mark.parametrize(
    ("seqs", "place", "text", "where"),
    [({}, 0, "new", "from line 1 on"), ({"from_seq": 2, "to_seq": 5}, 0, "new", "from line 1 on"),
     ({"from_seq": 2, "to_seq": 2}, 2, "edited", "line 3 differs")],
)  # fmt: skip
def test_moved_and_edited_lines_beside_erased_messages_are_refused(imported, refused, seqs, place, text, where):
    lines = [json.dumps({"role": "user", "content": f"message {n}", "session_id": "a"}) + "\n" for n in range(5)]
    imported("changed.jsonl", "".join(lines).encode())
    erase(Conversation.objects.get().pk, **seqs)
    changed = lines[place].replace(f"message {place}", text)

    problem = refused("changed.jsonl", "".join([*lines[:place], changed, *lines[place + bool(place) :]]).encode())

    assert (problem["code"], Message.objects.count()) == ("history_changed", 5)
    assert problem["detail"].startswith(f"changed.jsonl, {where}")

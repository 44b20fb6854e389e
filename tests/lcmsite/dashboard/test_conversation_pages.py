"""The conversations of a workspace, and one of them: found, read, jumped about in, compacted by those who may."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.template.loader import render_to_string

from compaction.hosts.branching import Branches
from compaction.models import CompactionJob
from conversations.formats import READERS
from conversations.formats.documents import DOCUMENTS
from conversations.models import Conversation, Message
from conversations.types import NewMessage, Role
from integrity.repairs.quarantines import Quarantines
from lcmsite.dashboard.templatetags.lcm_tags import gauge
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, say
from tests.integrity.breaking import breaking
from tests.lcmsite.callers import lcm
from tests.lcmsite.dashboard.visiting import HOSTILE, page_of, shown_links


@pytest.fixture(scope="module")
def conversation_id(module_rows: None) -> int:
    texts = [f"Turn {n} of {HOSTILE}" for n in range(1, 101)]
    return a_conversation(*texts, title=f"{HOSTILE} & more", session_id="long-one").conversation_id


def shown(page: str) -> list[int]:
    return [int(piece.partition('"')[0]) for piece in page.split('id="m')[1:] if piece[0].isdigit()]


@pytest.mark.parametrize(("threshold", "told"), [(750, "M75.0 0V8"), (1000, None), (2000, None)])
def test_a_gauge_marks_where_compaction_begins_unless_that_is_its_end(threshold, told):
    drawn = gauge(100, 200, 300, 1000, threshold)

    assert drawn["limit"] == (75.0 if told else None)
    marked = render_to_string("dashboard/_gauge.html", drawn)
    assert (told or "") in marked and ("<path" in marked) == (told is not None)


def test_a_search_gives_the_list_alone_each_with_its_gauge(conversation_id, reader):
    found = reader.get("/w/default/conversations/?q=LONG", headers={"HX-Request": "true"}).content.decode()
    none = reader.get("/w/default/conversations/?q=short", headers={"HX-Request": "true"}).content.decode()

    assert "long-one" in found and 'class="gauge"' in found and "<html" not in found
    assert "No title or session contains" in none


def test_a_page_that_there_is_not_leads_to_one_that_there_is(conversation_id, reader):
    before = page_of(reader, "/w/default/conversations/?page=0")
    behind = page_of(reader, "/w/default/conversations/?sort=title&page=99")

    assert "Page 1 of 1" in before
    assert "There is no page 99." in behind and "No conversations yet" not in behind
    assert "?q=&sort=title&page=1" in shown_links(behind)


def test_a_conversation_opens_at_its_end_and_leads_back(conversation_id, reader):
    page = reader.get(f"/w/default/conversations/{conversation_id}/").content.decode()

    assert shown(page) == list(range(61, 101))
    assert "Earlier messages" in page and "Later messages" not in page
    assert len(re.findall(r"\d\d:\d\d:\d\d</time> UTC", page)) == 40
    assert HOSTILE not in page


def test_a_transcript_shows_branches(conversation_id, reader):
    Branches.from_settings().move_head(conversation_id=conversation_id, head_seq=98)
    say(conversation_id, "another turn")

    page = reader.get(f"/w/default/conversations/{conversation_id}/").content.decode()

    assert page.count("off the active path") == 2
    assert "A branch begins here. It follows" in page and 'href="#m98"' in page
    assert "head moved" in page


def test_a_message_is_jumped_to(conversation_id, reader):
    page = reader.get(f"/w/default/conversations/{conversation_id}/?seq=20").content.decode()

    assert shown(page)[:5] == [16, 17, 18, 19, 20]
    assert 'class="message assistant wanted" id="m20"' in page


@pytest.mark.parametrize(
    ("begin", "way", "gone"),
    [("", "before", ()), ("", "before", (1, 20, 21, 29, 100)), ("?seq=1", "seq", (1, 20, 21, 29, 100))],
)
def test_all_messages_are_reached_from_either_end_each_once(conversation_id, reader, begin, way, gone):
    without_messages(conversation_id, *gone)
    address = f"/w/default/conversations/{conversation_id}/"
    piece = reader.get(address + begin).content.decode()
    read = shown(piece)

    while further := re.search(rf"messages/\?{way}=\d+", piece):
        piece = reader.get(address + further[0]).content.decode()
        assert "<html" not in piece and ("Later" if way == "before" else "Earlier") not in piece
        read = shown(piece) + read if way == "before" else read + shown(piece)

    assert [seq for seq in read if seq not in gone] == [seq for seq in range(1, 101) if seq not in gone]
    assert len(read) == len(set(read))


def test_what_is_before_or_behind_nothing_does_no_harm(conversation_id, reader):
    for asked in ("before=1", "before=0", "before=999999", "seq=101", "before=x"):
        assert reader.get(f"/w/default/conversations/{conversation_id}/messages/?{asked}").status_code == 200, asked


def test_calls_are_shown_beside_their_results(reader):
    conversation_id = a_conversation("read it").conversation_id
    messages = [a_tool_call("c1", path="x.py"), a_tool_result("c1", "its text"), NewMessage(Role.ASSISTANT, "done")]
    say(conversation_id, *messages)

    page = reader.get(f"/w/default/conversations/{conversation_id}/").content.decode()

    assert "read_file" in page and "its text" in page
    assert 'The result of the call in <a href="#m2">' in page


def test_what_is_cut_on_the_page_is_whole_on_one_of_its_own(reader):
    output = "".join(f"line {number}\n" for number in range(5_000))
    conversation_id = a_conversation().conversation_id
    messages = [a_tool_call("c1", path="x.py"), a_tool_result("c1", f"{HOSTILE}{output}")]
    say(conversation_id, *messages)
    call, result = (each.id for each in a_store().list_messages(conversation_id=conversation_id))

    page = reader.get(f"/w/default/conversations/{conversation_id}/").content.decode()
    whole = reader.get(f"/w/default/messages/{result}/").content.decode()

    assert f"/w/default/messages/{result}/" in shown_links(page) and "line 4999" not in page
    assert f"/w/default/messages/{call}/" not in shown_links(page)
    assert output in whole and HOSTILE not in whole
    assert f"/w/default/conversations/{conversation_id}/?seq=2#m2" in shown_links(whole)


def test_a_message_opens_without_a_text_in_a_file_that_is_withheld(reader):
    log = "A line of a very long log.\n" * 5_000
    conversation_id = a_conversation(log, log).conversation_id
    once, twice = a_store().list_messages(conversation_id=conversation_id)
    # Both have one file, which holds what is withheld of the first.
    Quarantines.from_settings().quarantine(id=once.id, reason="It was altered.")

    of_once, of_twice = (reader.get(f"/w/default/messages/{each.id}/") for each in (once, twice))

    assert (of_once.status_code, of_twice.status_code) == (200, 200)
    assert "This message is quarantined" in of_once.content.decode() and "large_file" not in of_once.content.decode()
    assert "large_file" in of_twice.content.decode() and log not in of_twice.content.decode()


def test_only_who_may_write_is_offered_to_import_or_compact_and_lets_a_worker_do_it(conversation_id, reader, operator):
    path = f"/w/default/conversations/{conversation_id}/"
    assert "Compact now" not in reader.get(path).content.decode()
    assert "Import a history" not in reader.get("/w/default/conversations/").content.decode()
    assert reader.post(f"{path}compaction/").status_code == 403
    assert not CompactionJob.objects.exists()

    assert "Import a history" in operator.get("/w/default/conversations/").content.decode()
    assert "Compact now" in operator.get(path).content.decode()
    answer = operator.post(f"{path}compaction/", headers={"HX-Request": "true"}).content.decode()
    job = CompactionJob.objects.get()
    assert f"Job {job.pk}" in answer
    assert f"Job {job.pk}" in operator.get(f"{path}jobs/{job.pk}/").content.decode()


LINES = b"".join(b'{"role": "user", "content": "line %d"}\n' % n for n in range(3))


def a_file(content: bytes, name: str = "talk.jsonl") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def test_a_history_is_imported_from_a_file_once(operator):
    for told in ("3 messages stored.", "0 messages stored, 3 stored before."):
        answer = operator.post("/w/default/import/", {"file": a_file(LINES)}, follow=True)
        conversation = Conversation.objects.get(session_id="talk")
        assert answer.redirect_chain[-1][0] == f"/w/default/conversations/{conversation.pk}/"
        assert told in answer.content.decode()
        assert conversation.counters.message_count == 3


def test_the_page_to_import_names_every_format_and_says_which_lines_held_no_message_or_were_broken(operator):
    transcript = b"""
        {"type": "summary", "summary": "The weather", "leafUuid": "u1"}
        {"type": "user", "sessionId": "s1", "uuid": "u1", "message": {"role": "user", "content": "Is it raining?"}}
        {"type": "user", "sessionId": "s1", "uu
    """

    page = operator.get("/w/default/import/").content.decode()
    answer = operator.post("/w/default/import/", {"file": a_file(transcript)}, follow=True)

    assert all(name in page for name in (*READERS, *(each.name for each in DOCUMENTS), "Codex", "pi", "aider"))
    done = "1 message stored, 1 line without a message skipped, 1 broken line left out (4)."
    assert done in answer.content.decode()


def test_a_file_that_cannot_be_read_is_told_with_its_line_and_leaves_nothing(operator):
    before = Message.objects.count()
    for content, told in (
        (b"", "Choose a file"), (b"{broken", "line 1"), (LINES + b'{"role": "clown"}', "line 4"), (b"\x1f\x8bno", ""),
    ):  # fmt: skip
        answer = operator.post("/w/default/import/", {"file": a_file(content)})
        assert answer.status_code == 400 and told in answer.content.decode()
    assert Message.objects.count() == before


def test_a_file_whose_name_is_too_long_to_be_stored_is_refused(operator):
    answer = operator.post("/w/default/import/", {"file": a_file(LINES, "\u8239" * 90 + ".jsonl")})

    assert answer.status_code == 400 and "rename the file" in answer.content.decode()


def test_after_a_refused_import_the_form_is_there_again(operator):
    answer = operator.post("/w/default/import/", {"file": a_file(b"{broken"), "session": "a talk"}).content.decode()

    assert 'type="file"' in answer and 'value="a talk"' in answer and "line 1" in answer


def test_what_belongs_to_conversations_is_marked_so_in_the_navigation(operator):
    conversation_id = a_conversation("hello").conversation_id
    [message] = a_store().list_messages(conversation_id=conversation_id)

    for path in ("conversations/", f"conversations/{conversation_id}/plans/", "import/", f"messages/{message.id}/"):
        page = operator.get(f"/w/default/{path}").content.decode()
        navigation = page[page.index('<nav id="nav"') : page.index("</nav>")]
        assert re.findall(r'aria-current="page">([^<]*)', navigation) == ["Conversations"]


def without_messages(conversation_id: int, *seqs: int) -> None:
    """As if somebody had deleted rows past every trigger and key."""
    breaking(
        "DELETE FROM context_items WHERE message_id IN (SELECT message_id FROM messages"
        " WHERE conversation_id = %s AND seq = ANY(%s))",
        conversation_id,
        list(seqs),
    )
    breaking("DELETE FROM messages WHERE conversation_id = %s AND seq = ANY(%s)", conversation_id, list(seqs))


def marks_in(page: str) -> list[str]:
    return [" ".join(re.sub(r"<[^>]*>", "", each).split()) for each in re.findall(r"<b>Messages? \d.*?</b>", page)]


def test_messages_whose_rows_are_gone_leave_a_mark_in_the_transcript_and_on_the_command_line(conversation_id, reader):
    without_messages(conversation_id, 10, 62, 63, 64, 99, 100)
    address = f"/w/default/conversations/{conversation_id}/"

    newest = reader.get(address).content.decode()
    around = reader.get(f"{address}?seq=12").content.decode()
    earlier = reader.get(f"{address}messages/?before=61").content.decode()
    listed = lcm("messages", str(conversation_id), "--limit", "70").out

    assert marks_in(newest) == ["Messages 62 to 64 are missing.", "Messages 99 to 100 are missing."]
    assert marks_in(around) == ["Message 10 is missing."]
    assert marks_in(earlier) == []
    assert re.findall(r"^\[(.+)\] missing", listed, re.M) == ["10", "62-64"]
    assert f"{address}trust/" in shown_links(newest) and "/w/default/integrity/" in shown_links(newest)

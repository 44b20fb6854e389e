"""Files in the browser: which there are, what is known of one, its lines, and its bytes as they are."""

from __future__ import annotations

import re

import pytest

from conversations.files.large_files import LargeFileService
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from conversations.types import LargeFileRecord, NewMessage, NewPart, PartType, Role
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.dashboard.visiting import HOSTILE, as_part, older_in, page_of, shown_links

pytestmark = pytest.mark.django_db


def a_file(content: bytes = b"a,b\n1,2\n", *, conversation_id: int | None = None, **labels: str) -> LargeFileRecord:
    service = LargeFileService.from_settings(Scope(a_workspace().pk))
    if conversation_id is None:
        conversation_id = a_conversation().conversation_id
    return service.store(conversation_id=conversation_id, content=content, **labels)


def names(page: str) -> list[str]:
    return re.findall(r'<a href="[^"]*/files/file_\w+/">([^<]*)</a>', page)


def test_files_are_listed_of_all_and_of_one_conversation(reader):
    ours = a_file(file_name="boats.csv", mime_type="text/csv")
    a_file(b"other", file_name="other.txt")

    everything = reader.get("/w/default/files/").content.decode()
    one = reader.get(f"/w/default/conversations/{ours.conversation_id}/files/").content.decode()

    assert set(names(everything)) == {"other.txt", "boats.csv"}
    assert names(one) == ["boats.csv"] and "text/csv" in one


def test_a_file_is_shown_with_its_lines(reader):
    content = b"".join(b"line %d\n" % number for number in range(1, 301))
    file = a_file(content, file_name="lines.txt", mime_type="text/plain")

    page = reader.get(f"/w/default/files/{file.file_id}/").content.decode()
    more = as_part(reader, f"/w/default/files/{file.file_id}/lines/?line=201")

    assert "Lines 1 to 200" in page and "line 200\n" in page and "line 201\n" not in page
    assert f"/w/default/files/{file.file_id}/lines/?line=201" in page
    assert "Lines 201 to 300" in more and "More lines" not in more
    assert file.content_hash in page


def test_a_long_list_goes_on_where_it_ended(reader):
    conversation_id = a_conversation().conversation_id
    stored = {a_file(b"%d" % n, conversation_id=conversation_id, file_name=f"{n}.txt").file_name for n in range(51)}

    first = page_of(reader, "/w/default/files/")
    second = page_of(reader, f"/w/default/files/{older_in(first)}")

    assert (len(names(first)), len(names(second))) == (50, 1)
    assert set(names(first) + names(second)) == stored


def test_bytes_that_are_no_text_are_not_shown_as_one(reader):
    latin = a_file("So schön ist der Hafen nicht.".encode("latin-1"), file_name="latin.txt")

    for content in (bytes(range(256)) * 20, bytes(range(128, 256)) * 20):
        page = reader.get(f"/w/default/files/{a_file(content, file_name='a.bin').file_id}/").content.decode()
        assert "This file is not text" in page and "\N{REPLACEMENT CHARACTER}" not in page
    assert "ist der Hafen nicht." in reader.get(f"/w/default/files/{latin.file_id}/").content.decode()


def test_from_a_file_a_link_leads_to_the_message_that_needs_it(reader):
    file = a_file(b"ships", file_name="ships.txt")
    part = NewPart(PartType.FILE, file_url=file.file_id)
    said = NewMessage(role=Role.USER, content="see there", parts=(part,))
    [stored] = (
        ConversationStore.from_settings()
        .append_messages(conversation_id=file.conversation_id, messages=[said])
        .messages
    )

    page = reader.get(f"/w/default/files/{file.file_id}/").content.decode()
    [link] = [each for each in shown_links(page) if each.endswith(f"?id=msg_{stored.message_id}")]

    assert "see there" in reader.get(link, follow=True).content.decode()


def test_a_download_is_the_bytes_and_never_a_page_of_this_site(reader):
    content = f"{HOSTILE}\n".encode() * 10
    file = a_file(content, file_name="../evil.html", mime_type="text/html")

    answer = reader.get(f"/w/default/files/{file.file_id}/download/")

    assert b"".join(answer) == content
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"] == "attachment; filename*=UTF-8''evil.html"
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_a_file_whose_bytes_were_lost_is_described_all_the_same(reader, settings):
    file = a_file(file_name="lost.csv")
    (settings.MEDIA_ROOT / file.storage_uri).unlink()

    answer = reader.get(f"/w/default/files/{file.file_id}/")

    page = answer.content.decode()
    assert answer.status_code == 200 and "lost.csv" in page and 'role="alert"' in page

"""Pages end by their bytes as well as by their rows, say so, and leave nothing out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conversations.models import Conversation
from conversations.store.conversations import ConversationStore
from conversations.store.pages import MOST_PAGE_BYTES
from conversations.types import NewMessage, NewPart, PartType, Role
from lcmsite.catalogue.json_text import as_bytes
from lcmsite.catalogue.paging import Page
from tests.factories import a_conversation, a_store, a_workspace
from tests.lcmsite.callers import Api, an_api_key

pytestmark = pytest.mark.django_db

MEGABYTE = "x" * 1024**2


def an_older_store() -> ConversationStore:
    """A store that takes metadata of any size, as there was no bound once."""
    store = a_store()
    return replace(store, policy=replace(store.policy, max_metadata_bytes=10**9))


def all_pages(api: Api, path: str, **query: Any) -> list[list[dict[str, Any]]]:
    pages: list[list[dict[str, Any]]] = []
    behind: dict[str, Any] = {}
    while True:
        body = api.get(path, **behind, **query).body
        pages.append(body["items"])
        if "next_cursor" not in body:
            return pages
        behind = {"cursor": body["next_cursor"]}


MESSAGES = {
    "metadata": lambda: NewMessage(Role.USER, "short", metadata={"x": MEGABYTE}),
    "metadata in an order that jsonb does not keep": lambda: NewMessage(
        Role.USER, "short", metadata={"zz": MEGABYTE, "a": 1}
    ),
    "metadata of a part": lambda: NewMessage(
        Role.USER, parts=(NewPart(PartType.TEXT, text_content="short", metadata={"x": MEGABYTE}),)
    ),
    "an attachment": lambda: NewMessage(Role.USER, "look", parts=(NewPart(PartType.FILE, file_url=MEGABYTE),)),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_page_of_large_messages_ends_by_its_bytes_and_the_next_goes_on(kind):
    conversation = a_conversation()
    an_older_store().append_messages(
        conversation_id=conversation.conversation_id, messages=[MESSAGES[kind]() for _ in range(10)]
    )

    pages = all_pages(Api(an_api_key()), f"conversations/{conversation.conversation_id}/messages/", limit=1000)

    assert [each["seq"] for page in pages for each in page] == list(range(1, 11))
    assert 2 <= len(pages) <= 4
    assert all(len(as_bytes(page)) <= MOST_PAGE_BYTES for page in pages)


def test_a_message_larger_than_a_page_comes_alone(monkeypatch):
    monkeypatch.setattr("conversations.store.pages.MOST_PAGE_BYTES", 2000)
    conversation = a_conversation("a" * 3000, "b", "c" * 3000)

    store = a_store()
    first = store.list_messages(conversation_id=conversation.conversation_id)
    second = store.list_messages(conversation_id=conversation.conversation_id, after_seq=1)
    third = store.list_messages(conversation_id=conversation.conversation_id, after_seq=2)

    assert [[each.seq for each in page] for page in (first, second, third)] == [[1], [2], [3]]
    assert [page.more for page in (first, second, third)] == [True, True, False]


def test_conversations_with_large_metadata_come_by_bytes_too():
    workspace = a_workspace()
    Conversation.objects.bulk_create(
        Conversation(workspace=workspace, session_id=f"old {number}", metadata={"x": MEGABYTE}) for number in range(10)
    )

    pages = all_pages(Api(an_api_key()), "conversations/", limit=1000)

    assert len({each["conversation_id"] for page in pages for each in page}) == 10
    assert len(pages) == 2


def test_any_other_list_ends_by_its_bytes_as_it_is_written():
    page = Page(
        [{"text": MEGABYTE, "id": n} for n in range(10)], cursor_of=lambda row: f"behind {row['id']}", more=False
    )

    body = as_bytes(page)

    assert len(body) <= MOST_PAGE_BYTES + 100 and body.endswith(b'"next_cursor":"behind 6"}')


def test_the_slots_of_a_long_context_come_in_pages():
    conversation = a_conversation(*map(str, range(25)))

    pages = all_pages(Api(an_api_key()), f"conversations/{conversation.conversation_id}/context-items/", limit=10)

    assert [len(page) for page in pages] == [10, 10, 5]
    assert [each["ordinal"] for page in pages for each in page] == list(range(1, 26))

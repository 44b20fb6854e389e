"""Where a file stands among messages."""

from __future__ import annotations

from conversations.files.large_files import LargeFileService
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from retrieval.engine import RetrievalEngine
from retrieval.types import ItemKind
from tests.factories import a_conversation, a_store, a_workspace


def test_a_file_stands_where_the_conversation_was_when_it_was_stored(committed_db):
    conversation = a_conversation("boats, first", "boats, second")
    scope = Scope(a_workspace().pk)
    number = conversation.conversation_id
    stored = LargeFileService.from_settings(scope).store(
        conversation_id=number, content=b"boats", file_name="fleet.txt", mime_type="text/plain"
    )
    a_store().append_messages(conversation_id=number, messages=[NewMessage(Role.USER, "boats, third")])

    for of_one in ({"conversation_id": number}, {}):
        result = RetrievalEngine.from_settings(scope).grep(query="boats", scope="all", sort="recency", **of_one)

        assert [(match.kind, match.first_seq) for match in result.matches] == [
            (ItemKind.MESSAGE, 3),
            (ItemKind.MESSAGE, 2),
            (ItemKind.FILE, 2),
            (ItemKind.MESSAGE, 1),
        ]
        assert result.matches[2].id == stored.file_id

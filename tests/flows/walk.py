"""What every flow comes down to: a real conversation taken in, and every byte of it had again by way of its context."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conversations.formats.neutral import from_neutral, to_neutral
from conversations.models import Message
from conversations.types import ContextItemType, ConversationRecord, NewMessage
from retrieval.engine import RetrievalEngine
from retrieval.slices import joined
from retrieval.types import ExpandedItem
from tests.factories import a_store


def imported(rows: list[dict[str, Any]]) -> ConversationRecord:
    store = a_store()
    conversation = store.open_conversation(session_id=rows[0]["session_id"], overrides={"autocompact_disabled": True})
    messages: list[NewMessage] = [from_neutral(row) for row in rows]
    for start in range(0, len(messages), 500):
        store.append_messages(conversation_id=conversation.conversation_id, messages=messages[start : start + 500])
    return store.get_conversation(conversation_id=conversation.conversation_id)


def expanded(root: str) -> Iterator[ExpandedItem]:
    engine = RetrievalEngine.from_settings()
    cursor = None
    while True:
        page = engine.expand(summary_id=root, depth=-1, include_messages=True, token_cap=4000, cursor=cursor)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


def everything_said(conversation: ConversationRecord) -> list[tuple[int, str, Any]]:
    """Every message by way of the context: below its summaries, by expansion, and raw.

    In the order of the context, but for system messages, which no summary takes in: they come in their own place.
    """
    store = a_store()
    said = []
    for item in store.get_context_items(conversation_id=conversation.conversation_id):
        if item.item_type is ContextItemType.MESSAGE:
            message = store.get_message(message_id=item.message_id or 0)
            said.append((message.seq, message.content, message.parts))
        else:
            below = joined(expanded(item.summary_id or ""))
            said += [(each.seq, each.content, each.parts) for each in below]
    system = set(
        Message.objects.filter(conversation_id=conversation.conversation_id, role="system").values_list(
            "seq", flat=True
        )
    )
    seqs = [seq for seq, _, _ in said if seq not in system]
    assert seqs == sorted(seqs)
    said.sort(key=lambda each: each[0])
    return [(seq, content, [part for part in parts if not part.is_synthetic]) for seq, content, parts in said]


def assert_every_message_comes_back(conversation: ConversationRecord, rows: list[dict[str, Any]]) -> None:
    """By expansion and from the raw tail: each once, in order, its content and its parts as they were given."""
    said = everything_said(conversation)
    stored = a_store().list_messages(conversation_id=conversation.conversation_id, limit=len(rows) + 1)
    session_id = rows[0]["session_id"]

    assert [(seq, content) for seq, content, _ in said] == [(n, row["content"]) for n, row in enumerate(rows, 1)]
    assert [to_neutral(message, session_id=session_id, first_seq=0) for message in stored] == rows
    assert [parts for _, _, parts in said] == [
        [part for part in message.parts if not part.is_synthetic] for message in stored
    ]

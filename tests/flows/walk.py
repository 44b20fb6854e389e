"""What every flow comes down to: a real conversation taken in, and every byte of it had again by way of its context."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conversations.formats.neutral import from_neutral, to_neutral
from conversations.models import Message
from conversations.types import ContextItemType, ConversationRecord, NewMessage, NewPart
from integrity.checker import IntegrityChecker
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


def expanded(root: str, *, token_cap: int = 4000) -> Iterator[ExpandedItem]:
    engine = RetrievalEngine.from_settings()
    cursor = None
    while True:
        page = engine.expand(summary_id=root, depth=-1, include_messages=True, token_cap=token_cap, cursor=cursor)
        assert page.tokens <= page.token_cap or len(page.items) == 1
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


def everything_said(conversation_id: int, *, token_cap: int = 4000) -> list[tuple[int, str, list[NewPart]]]:
    """Every message by way of the context: below its summaries, by expansion, and raw; without added parts."""
    store = a_store()
    said = []
    for item in store.get_context_items(conversation_id=conversation_id):
        if item.item_type is ContextItemType.MESSAGE:
            message = store.get_message(message_id=item.message_id or 0)
            said.append((message.seq, message.content, message.parts))
        else:
            below = joined(expanded(item.summary_id or "", token_cap=token_cap))
            said += [(each.seq, each.content, each.parts) for each in below]
    return [(seq, content, [part for part in parts if not part.is_synthetic]) for seq, content, parts in said]


def in_order(conversation_id: int) -> list[tuple[int, str, list[NewPart]]]:
    """Everything said, which the context has in order, but for system messages: no summary takes those in."""
    said = everything_said(conversation_id)
    messages = Message.objects.filter(conversation_id=conversation_id, role="system")
    system = set(messages.values_list("seq", flat=True))
    seqs = [seq for seq, _, _ in said if seq not in system]
    assert seqs == sorted(seqs)
    return sorted(said, key=lambda each: each[0])


def assert_clean(conversation_id: int | None = None) -> None:
    report = IntegrityChecker.from_settings().run(conversation_id=conversation_id)
    assert report.is_clean, report.broken


def assert_every_message_comes_back(conversation: ConversationRecord, rows: list[dict[str, Any]]) -> None:
    """By expansion and from the raw tail: each once, in order, its content and its parts as they were given."""
    said = in_order(conversation.conversation_id)
    stored = a_store().list_messages(conversation_id=conversation.conversation_id, limit=len(rows) + 1)
    session_id = rows[0]["session_id"]

    assert [(seq, content) for seq, content, _ in said] == [(n, row["content"]) for n, row in enumerate(rows, 1)]
    assert [to_neutral(message, session_id=session_id, first_seq=0) for message in stored] == rows
    assert [parts for _, _, parts in said] == [
        [part for part in message.parts if not part.is_synthetic] for message in stored
    ]

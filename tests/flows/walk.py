"""What every flow comes down to: a real conversation taken in, and every byte of it had again by way of its context."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conversations.formats.neutral import from_neutral, to_neutral
from conversations.models import Message
from conversations.types import ContextItemType, ConversationRecord, NewMessage, NewPart
from integrity.checker import IntegrityChecker
from retrieval.engine import RetrievalEngine
from retrieval.types import ExpandedItem
from tests.conversations.real_data import conversation_files, rows_of
from tests.factories import a_store
from tests.rejoining import joined
from tests.retrieval.lineages import pages

# What is said in a message: its seq, its text, and its parts.
Said = tuple[int, str, list[NewPart]]


def imported(rows: list[dict[str, Any]], *, session_id: str | None = None, **overrides: Any) -> ConversationRecord:
    store = a_store()
    conversation = store.open_conversation(
        session_id=session_id or rows[0]["session_id"], overrides={"autocompact_disabled": True, **overrides}
    )
    messages: list[NewMessage] = [from_neutral(row) for row in rows]
    for start in range(0, len(messages), 500):
        store.append_messages(conversation_id=conversation.conversation_id, messages=messages[start : start + 500])
    return store.get_conversation(conversation_id=conversation.conversation_id)


def real_rows(name: str) -> list[dict[str, Any]]:
    """The messages of the first real conversation whose name begins so."""
    return list(rows_of(next(file for file in conversation_files() if file.name.startswith(name))))


def expanded(root: str, *, token_cap: int = 4000) -> Iterator[ExpandedItem]:
    expand = RetrievalEngine.from_settings().expand
    for page in pages(expand, summary_id=root, depth=-1, include_messages=True, token_cap=token_cap):
        assert page.tokens <= page.token_cap or len(page.items) == 1
        yield from page.items


def everything_said(conversation_id: int, *, token_cap: int = 4000) -> list[Said]:
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


def in_order(conversation_id: int) -> list[Said]:
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

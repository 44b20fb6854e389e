"""An assembled context in the neutral form of `conversations.formats.neutral`. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from conversations.fast.records import record
from conversations.formats import to_neutral
from conversations.types import MessageRecord
from retrieval.assembly.types import AssembledContext, AssembledItem
from retrieval.formats.rendered import Rendered


def as_neutral(context: AssembledContext) -> list[dict[str, Any]]:
    """One row an item, oldest first: a message as it came, a summary as a user's text; each with its id and seqs."""
    return [_row(item) for item in context.items]


def rendered_neutral(items: Iterable[AssembledItem]) -> Rendered:
    """The same rows; there is nothing to repair."""
    shown = tuple(items)
    return Rendered(messages=tuple(map(_row, shown)), sources=tuple((item.id,) for item in shown))


def _row(item: AssembledItem) -> dict[str, Any]:
    row = to_neutral(_record(item), session_id="")
    del row["session_id"]
    return {"id": item.id, **row, "last_seq": item.last_seq}


def _record(item: AssembledItem) -> MessageRecord:
    # Of hashes, counts and ids of other rows a neutral row says nothing.
    values = {
        "message_id": 0,
        "conversation_id": 0,
        "seq": item.first_seq,
        "role": item.role,
        "content": item.text,
        "token_count": item.tokens,
        "token_counter": "",
        "created_at": item.created_at,
        "content_hash": "",
        "chain_hash": "",
        "author": item.author,
        "metadata": item.metadata,
        "parts": item.parts,
    }
    return record(MessageRecord, values)

"""The records of turn ranges: what covers a stretch of a conversation, and what it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from retrieval.types import ExpandedItem, MessageSpan, SummaryOutline


@dataclass(frozen=True)
class CoveringNode:
    """A summary of the active context that stands for messages of the range, and how far beyond the range it reaches.

    `content` is its text, for the first of them that fit `LCM_MAX_EXPAND_TOKENS` together.
    """

    summary: SummaryOutline
    messages_in_range: int
    seqs_before: int
    seqs_after: int
    content: str | None = None


@dataclass(frozen=True)
class RangeDescription:
    """What stands for a range of messages in the active context, and what opening that would cost.

    `nodes` and `raw_messages` together are every message of the range. `manifest` are the summaries below the nodes
    that overlap the range, each with its `opening_tokens`, in order, or the nearest of them (`manifest_complete`).
    `first_seq` to `last_seq` is how far all nodes reach. `context_tokens`: what nodes and raw messages cost as they
    are; `message_tokens`: what the messages themselves cost.
    """

    conversation_id: int
    from_seq: int
    to_seq: int
    first_seq: int
    last_seq: int
    message_count: int
    message_tokens: int
    context_tokens: int
    nodes: tuple[CoveringNode, ...]
    raw_messages: tuple[MessageSpan, ...]
    manifest: tuple[SummaryOutline, ...]
    manifest_complete: bool
    note: str | None = None


@dataclass(frozen=True)
class RangeExpansion:
    """One page of what a range holds, in order. `cursor` continues it, and is None once everything was given.

    `of` of an item that is in the active context is the conversation. With `keep_ends`, the last item is the last one
    of the range, whole or its beginning, and `gap` is what lies between it and those before.
    """

    conversation_id: int
    from_seq: int
    to_seq: int
    depth: int
    include_messages: bool
    only_messages: bool
    items: tuple[ExpandedItem, ...]
    tokens: int
    token_cap: int
    truncated: bool
    cursor: Annotated[str | None, Field(serialization_alias="next_cursor")]
    gap: MessageSpan | None = None
    note: str | None = None

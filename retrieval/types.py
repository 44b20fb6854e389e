"""The records that grep, describe, expand and lineage return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from compaction.history.types import HistoryKind
from compaction.types import BoundaryRecord, RunRecord
from conversations.types import ConversationRecord, Level, Role, SummaryKind
from retrieval.slices import PartView


class GrepMode(StrEnum):
    FULL_TEXT = "full_text"
    REGEX = "regex"
    # By embeddings alone, and by words and embeddings (by words if there is no embedder).
    SEMANTIC = "semantic"
    HYBRID = "hybrid"


class GrepScope(StrEnum):
    MESSAGES = "messages"
    SUMMARIES = "summaries"
    BOTH = "both"
    FILES = "files"
    ALL = "all"


class BranchChoice(StrEnum):
    """Whether to search only the active path of a conversation, or all branches."""

    ACTIVE = "active"
    ALL = "all"


class GrepSort(StrEnum):
    RELEVANCE = "relevance"
    RECENCY = "recency"
    HYBRID = "hybrid"


class ItemKind(StrEnum):
    """The kind of thing that an id names."""

    MESSAGE = "message"
    SUMMARY = "summary"
    FILE = "file"
    RUN = "run"
    CONVERSATION = "conversation"
    # The summary of a session, an arc or an epoch, which other conversations of its project can read.
    SESSION_SUMMARY = "session_summary"


@dataclass(frozen=True)
class Snippet:
    """A piece of a text around a match; `highlights` are positions within the piece."""

    text: str
    offset: int
    highlights: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Match:
    """A message, summary or file that matches the query.

    `covered_by` is the summary in the active context that covers it. The `created_at` of a summary is that of its last
    message. A file matches by its name or description; its seq is that of the newest message when the file was stored,
    and its tokens are those of the description.
    """

    id: str
    kind: ItemKind
    conversation_id: int
    session_id: str
    first_seq: int
    last_seq: int
    created_at: datetime
    token_count: int
    score: float
    snippet: Snippet
    active: bool
    covered_by: str | None = None
    role: Role | None = None
    author: str | None = None
    depth: int | None = None
    file_name: str | None = None
    # Whether the text is withheld: it is quarantined, or repeats quarantined words.
    quarantined: bool = False


@dataclass(frozen=True)
class GrepResult:
    """A page of matches in the order of `sort`, and how the query was parsed.

    `relaxed`: the matches contain any of the words, because the query is a sentence or too few texts contain every
    word. `used` are the words that were searched for; `dropped` words are in no text or in too many. `bounded`: not
    every candidate was examined; `note` explains it. `more`: there are further matches; `next_cursor` continues with
    them. `cold_messages` counts the messages of these conversations in cold storage; `cold`: only these were searched.
    """

    query: str
    mode: GrepMode
    scope: GrepScope
    conversation_id: int | None
    matches: Annotated[tuple[Match, ...], Field(serialization_alias="items")]
    relaxed: bool = False
    used: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    bounded: bool = False
    note: str | None = None
    conversation_ids: tuple[int, ...] = ()
    sort: GrepSort = GrepSort.RELEVANCE
    more: bool = False
    cursor: Annotated[str | None, Field(serialization_alias="next_cursor")] = None
    cold: bool = False
    cold_messages: int = 0


@dataclass(frozen=True)
class SummaryOutline:
    """A summary without its text.

    `opening_tokens` are the tokens of its sources. `confidence` (0 to 1) and its reason follow from the level.
    """

    summary_id: str
    kind: SummaryKind
    depth: int
    token_count: int
    opening_tokens: int
    first_seq: int
    last_seq: int
    earliest_at: datetime
    latest_at: datetime
    descendant_count: int
    level: Level
    confidence: float
    confidence_reason: str
    active: bool
    # The number of levels below the described summary; negative for summaries above it.
    distance: int = 0
    # The newer summary of the same sources that replaced it.
    superseded_by: str | None = None


@dataclass(frozen=True)
class MessageSpan:
    """A range of messages without a gap."""

    first_seq: int
    last_seq: int

    @property
    def count(self) -> int:
        return self.last_seq - self.first_seq + 1


@dataclass(frozen=True)
class Description:
    """The description of what an id names; fields that do not apply are empty.

    - a summary: `sources` and `source_messages` are what it was made from, `derived` the summaries made from it.
      `manifest` lists the summaries below it, in order; if `manifest_complete` is false, only the nearest
    - a message: a page of its text, in the fields of `ExpandedItem`; `next_cursor` continues it
    - a message or summary: `held_by` are the summaries above it, nearest first, up to the active one
    - a run: `manifest` lists the summaries that it made
    - a conversation: `manifest` lists the summaries in its context, `raw_messages` the messages there that are not
      summarized; `summary_count` counts all its summaries, `run` is the latest run
    - a session summary: `active` until another supersedes it; `derived` are the arcs or epochs made from it. An arc or
      epoch has no conversation
    """

    id: str
    kind: ItemKind
    conversation_id: int | None
    created_at: datetime
    token_count: int | None = None
    active: bool | None = None
    first_seq: int | None = None
    last_seq: int | None = None
    earliest_at: datetime | None = None
    latest_at: datetime | None = None
    summary_kind: SummaryKind | None = None
    depth: int | None = None
    level: Level | None = None
    # Of a summary, by its level: from 0 to 1, and why.
    confidence: float | None = None
    confidence_reason: str | None = None
    # Made without a model, or from summaries that were.
    is_degraded: bool | None = None
    model: str | None = None
    opening_tokens: int | None = None
    source_tokens: int | None = None
    message_count: int | None = None
    sources: tuple[str, ...] = ()
    source_messages: tuple[MessageSpan, ...] = ()
    derived: tuple[str, ...] = ()
    manifest: tuple[SummaryOutline, ...] = ()
    manifest_complete: bool = True
    file_ids: tuple[str, ...] = ()
    quality: Mapping[str, Any] | None = None
    role: Role | None = None
    author: str | None = None
    part_types: tuple[str, ...] = ()
    held_by: tuple[SummaryOutline, ...] = ()
    file_name: str | None = None
    mime_type: str | None = None
    byte_size: int | None = None
    exploration_summary: str | None = None
    # Of a file: the messages that need it and the summaries that cover them.
    needed_by: tuple[str, ...] = ()
    content_hash: str | None = None
    # The whole text of a summary, or this page of a message's.
    content: str | None = None
    # Of a message: the tokens of this page, whether it ends the message, and where it begins.
    tokens: int | None = None
    complete: bool | None = None
    content_offset: int | None = None
    content_total: int | None = None
    parts: tuple[PartView, ...] = ()
    parts_json: str | None = None
    parts_offset: int | None = None
    parts_total: int | None = None
    cursor: Annotated[str | None, Field(serialization_alias="next_cursor")] = None
    supersedes: str | None = None
    superseded_by: str | None = None
    run_id: str | None = None
    run: RunRecord | None = None
    conversation: ConversationRecord | None = None
    raw_messages: tuple[MessageSpan, ...] = ()
    summary_count: int | None = None
    # Of a conversation: how many of its messages have embeddings; absent if no embedder is set up.
    embedded_messages: int | None = None
    # Whether its text, or a file's bytes, were permanently erased; its seq and hashes remain.
    erased: bool = False
    # Why its text is withheld; absent if it is not.
    quarantined: str | None = None
    # Of a session summary.
    project: str | None = None
    history_kind: HistoryKind | None = None


@dataclass(frozen=True)
class ExpandedItem:
    """A summary or a message, whole or a slice, on a page of an expansion.

    `of` is the summary of which the item is a source. `level` is the number of levels below the expanded summary. An
    item that is too long for a page is returned in slices: each slice has the piece of the content that begins at
    `content_offset`. After a message's content, its parts follow as pieces of `parts_json`. `complete` is true on the
    last slice. A message that is returned whole has its `parts`.
    """

    id: str
    kind: ItemKind
    of: str
    level: int
    first_seq: int
    last_seq: int
    tokens: int
    content: str
    created_at: datetime
    complete: bool = True
    content_offset: int = 0
    content_total: int = 0
    role: Role | None = None
    author: str | None = None
    parts: tuple[PartView, ...] = ()
    parts_json: str = ""
    parts_offset: int = 0
    parts_total: int = 0
    summary_kind: SummaryKind | None = None
    depth: int | None = None
    descendant_count: int | None = None
    # Whether the content was permanently erased; it is empty then.
    erased: bool = False
    # Whether the content is withheld: it is quarantined, or repeats quarantined words.
    quarantined: bool = False
    # The times of a summary's first and last message.
    earliest_at: datetime | None = None
    latest_at: datetime | None = None


@dataclass(frozen=True)
class ExpandResult:
    """One page of an expansion; `next_cursor` continues it, absent at the end."""

    summary_id: str
    conversation_id: int
    depth: int
    include_messages: bool
    items: tuple[ExpandedItem, ...]
    tokens: int
    token_cap: int
    truncated: bool
    cursor: Annotated[str | None, Field(serialization_alias="next_cursor")]
    # All messages that the summary covers, at any depth.
    messages_below: int
    # With `keep_ends`: the messages skipped before the last item of the page, which is the last of all.
    gap: MessageSpan | None = None
    note: str | None = None


@dataclass(frozen=True)
class LineageNode:
    """A summary in the lineage. `direct_messages` counts messages it was made from."""

    summary_id: str
    kind: SummaryKind
    depth: int
    level: Level
    confidence: float
    confidence_reason: str
    first_seq: int
    last_seq: int
    token_count: int
    source_tokens: int
    direct_messages: int
    descendant_count: int
    created_at: datetime
    active: bool


@dataclass(frozen=True)
class LineageEdge:
    """A link of the lineage: `summary_id` was made from the summary `source_id`."""

    summary_id: str
    source_id: str


@dataclass(frozen=True)
class Lineage:
    """A conversation's summaries, their sources, and its messages not summarized.

    `boundaries` are the seqs after which an agent program (host) has cut its own context, in order.
    """

    conversation_id: int
    message_count: int
    nodes: tuple[LineageNode, ...]
    edges: tuple[LineageEdge, ...]
    raw_messages: tuple[MessageSpan, ...]
    boundaries: tuple[BoundaryRecord, ...] = ()

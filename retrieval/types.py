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
    # By what a message means, and by both: where an embedder is set up.
    SEMANTIC = "semantic"
    HYBRID = "hybrid"


class GrepScope(StrEnum):
    MESSAGES = "messages"
    SUMMARIES = "summaries"
    BOTH = "both"
    FILES = "files"
    ALL = "all"


class BranchChoice(StrEnum):
    """Whether to find what is off the active path of a conversation, too."""

    ACTIVE = "active"
    ALL = "all"


class GrepSort(StrEnum):
    RELEVANCE = "relevance"
    RECENCY = "recency"
    HYBRID = "hybrid"


class ItemKind(StrEnum):
    """What an id names."""

    MESSAGE = "message"
    SUMMARY = "summary"
    FILE = "file"
    RUN = "run"
    CONVERSATION = "conversation"
    # Of a session, an arc or an epoch: what other conversations of a project get to see.
    SESSION_SUMMARY = "session_summary"


@dataclass(frozen=True)
class Snippet:
    """A piece of a text around a match; `highlights` are positions within it."""

    text: str
    offset: int
    highlights: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Match:
    """A message, summary or file found. `covered_by`: its active summary.

    A summary is of when its last message was said. A file, found by its name and by what was seen in it, has the seq of
    the newest message at the time it was stored, and the tokens of its description.
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
    # It is quarantined, or repeats quarantined words; its text is withheld.
    quarantined: bool = False


@dataclass(frozen=True)
class GrepResult:
    """A page of matches in the order of `sort`, and how the query was read.

    `relaxed`: these hold any of the words, as too few texts hold every one, or the query is a sentence. `used` are the
    words that were searched for, `dropped` those that could not be: they are in no text, or in too many. `bounded`: not
    everything was looked at; `note` says what that means. With `more`, there are matches that neither `limit` nor the
    tokens of a page have room for, and `cursor` leads on to them.
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
    # Whether the cold texts were searched, and nothing else; and how many messages of these conversations are cold.
    cold: bool = False
    cold_messages: int = 0


@dataclass(frozen=True)
class SummaryOutline:
    """A summary without its text. `opening_tokens`: what its sources cost.

    `confidence`, from 0 to 1, and its reason follow from the level.
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
    # How far below the summary that was asked about; the way up counts as negative.
    distance: int = 0
    # The summary of the same sources that was made instead.
    superseded_by: str | None = None


@dataclass(frozen=True)
class MessageSpan:
    """Messages that follow each other without a gap."""

    first_seq: int
    last_seq: int

    @property
    def count(self) -> int:
        return self.last_seq - self.first_seq + 1


@dataclass(frozen=True)
class Description:
    """What an id names; fields that its kind does not have are empty.

    `sources` and `derived` are what a summary was made from and what was made from it or from a message; `manifest` is
    everything below it that is a summary, in order, or the nearest of it (`manifest_complete`). `held_by` is the way
    up, from a message or a summary to the active summary that stands for it. A run's manifest are the summaries that it
    made; a conversation's, those in its context, beside its `raw_messages`; its `summary_count` is of all, its `run`
    is the last one in it. A message has a page of its text, whole or a slice, in the fields of `ExpandedItem`; its
    `cursor` leads on, and `slices.joined` makes the stored message of its pages. A session summary rests on `sources`
    and `source_messages`, and `derived` are the arcs or epochs made from it; it is `active` until another supersedes
    it. An arc or epoch is of no one conversation.
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
    # Of a summary: what its level says of it, from 0 to 1, and why.
    confidence: float | None = None
    confidence_reason: str | None = None
    # Made without a model, or from what was.
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
    # Of a file: the messages that need it and the summaries that stand for them.
    needed_by: tuple[str, ...] = ()
    content_hash: str | None = None
    # The text of a summary, which is short, or the page of a message's.
    content: str | None = None
    # Of a message, beside its content: where this page begins, whether it ends the message, and what it costs.
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
    # Of a conversation: how many of its messages search by meaning knows; None where no embedder is set up.
    embedded_messages: int | None = None
    # Its text, or a file's bytes, had to be erased for good; what is left are its place and its hashes.
    erased: bool = False
    # Why its text is withheld; None if it is not.
    quarantined: str | None = None
    # Of a session summary.
    project: str | None = None
    history_kind: HistoryKind | None = None


@dataclass(frozen=True)
class ExpandedItem:
    """A summary or a message, whole or a slice, on a page of an expansion.

    `of` is the summary it is a source of, `level` how far below the expanded one. What is too long for a page comes in
    slices. Each has the piece of the content that begins at `content_offset`; once a message's content is through, its
    parts follow as pieces of `parts_json`. `complete` is true on the slice that ends it. A message that comes whole has
    its `parts`. `slices.joined` makes stored messages of either.
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
    # There is no content because it had to be erased for good.
    erased: bool = False
    # There is no content because it is quarantined, or repeats quarantined words.
    quarantined: bool = False


@dataclass(frozen=True)
class ExpandResult:
    """One page of an expansion. `cursor` continues it; None at the end."""

    summary_id: str
    conversation_id: int
    depth: int
    include_messages: bool
    items: tuple[ExpandedItem, ...]
    tokens: int
    token_cap: int
    truncated: bool
    cursor: Annotated[str | None, Field(serialization_alias="next_cursor")]
    # Messages that the summary stands for, at any depth.
    messages_below: int
    # With `keep_ends`: what lies between the last item, which is the last of all, and those before it.
    gap: MessageSpan | None = None
    note: str | None = None


@dataclass(frozen=True)
class LineageNode:
    """A summary in the lineage. `direct_messages` are sources of its own."""

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
    """The summary was made from the source."""

    summary_id: str
    source_id: str


@dataclass(frozen=True)
class Lineage:
    """A conversation's summaries, their sources, and its raw messages.

    `boundaries` are the places where a host that compacts by itself has cut its own context, in order.
    """

    conversation_id: int
    message_count: int
    nodes: tuple[LineageNode, ...]
    edges: tuple[LineageEdge, ...]
    raw_messages: tuple[MessageSpan, ...]
    boundaries: tuple[BoundaryRecord, ...] = ()

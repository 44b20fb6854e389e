"""The records of the history of projects."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from compaction.history.types import HistoryKind
from conversations.types import Level, ParentLink
from retrieval.types import ExpandedItem, Snippet


@dataclass(frozen=True)
class ProjectOutline:
    """A project, with its numbers of conversations and of current summaries."""

    project_id: int
    name: str
    created_at: datetime
    conversations: int
    # Conversations that have a session summary.
    sessions: int
    arcs: int
    epochs: int
    latest_at: datetime | None = None


@dataclass(frozen=True)
class TimelineEntry:
    """A session, arc or epoch of a project.

    A session without an `id` has no summary yet. `part_of` is the arc or epoch that contains the entry. `behind` counts
    the messages of the conversation that the summary does not cover yet. `content` is absent if it does not fit the
    page, or if the text is erased, withheld or not made yet.
    """

    id: str | None
    kind: HistoryKind
    project: str | None
    earliest_at: datetime
    latest_at: datetime
    token_count: int | None = None
    content: str | None = None
    part_of: str | None = None
    # Of a session.
    conversation_id: int | None = None
    session_id: str | None = None
    title: str | None = None
    parent_id: int | None = None
    parent_link: ParentLink | None = None
    message_count: int | None = None
    behind: int = 0
    # Of an arc or epoch: how many summaries it was made from, and how many sessions are below it.
    children: int | None = None
    sessions: int | None = None
    level: Level | None = None
    confidence: float | None = None
    is_degraded: bool = False
    # Whether its text was permanently erased.
    erased: bool = False
    # Whether it was made from content that is quarantined now; its text is withheld until it is regenerated.
    quarantined: bool = False

    @property
    def place(self) -> list[Any]:
        """Its position in a timeline, newest first."""
        return [self.latest_at, self.kind.depth, self.id or f"conv_{self.conversation_id}"]


@dataclass(frozen=True)
class SessionAgo:
    """An earlier session of the same project, and how to read on.

    `session.content` is its summary; `calls` are the tools to call for more of it.
    """

    conversation_id: int
    sessions_ago: int
    project: str
    session: TimelineEntry
    calls: tuple[str, ...]


@dataclass(frozen=True)
class HistoryItem(ExpandedItem):
    """An item of an expansion of history, with the conversation it is from.

    A session, arc or epoch summary has a `history_kind`; the seqs of arcs and epochs are 0.
    """

    conversation_id: int | None = None
    history_kind: HistoryKind | None = None


@dataclass(frozen=True)
class SessionExpansion:
    """One page of the expansion of a session, arc or epoch summary.

    Items are listed oldest first: an arc before its sessions, a session before its summaries and messages.
    `next_cursor` continues the page; it is absent at the end.
    """

    summary_id: str
    kind: HistoryKind
    project: str | None
    depth: int
    include_messages: bool
    items: tuple[HistoryItem, ...]
    tokens: int
    token_cap: int
    truncated: bool
    cursor: Annotated[str | None, Field(serialization_alias="next_cursor")]
    # The newer summary that replaced this one.
    superseded_by: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class SessionMatch:
    """A current session, arc or epoch summary that matches a query."""

    id: str
    kind: HistoryKind
    project: str | None
    conversation_id: int | None
    session_id: str | None
    earliest_at: datetime
    latest_at: datetime
    token_count: int
    score: float
    snippet: Snippet


@dataclass(frozen=True)
class SessionMatches:
    """A page of matches, best first.

    `relaxed`: too few summaries contain every word, so these contain any of the words.
    """

    query: str
    project: str | None
    matches: Annotated[tuple[SessionMatch, ...], Field(serialization_alias="items")]
    relaxed: bool = False
    next_offset: Annotated[int | None, Field(exclude=True)] = None
    next_cursor: str | None = None

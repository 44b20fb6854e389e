"""The records of memory across conversations."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from compaction.history.types import HistoryKind
from conversations.types import Level, ParentLink
from retrieval.types import ExpandedItem, Snippet


@dataclass(frozen=True)
class ProjectOutline:
    """A project: its conversations, and the current summaries of its past."""

    project_id: int
    name: str
    created_at: datetime
    conversations: int
    # Conversations that have a session summary; the others have none yet.
    sessions: int
    arcs: int
    epochs: int
    latest_at: datetime | None = None


@dataclass(frozen=True)
class TimelineEntry:
    """A session, arc or epoch of a project.

    A session without an `id` has no summary yet. `part_of` is the arc or epoch that holds it. `behind`: how many
    messages the conversation has that its summary does not cover yet. `content` is None where the page has no room for
    it, or there is none to show.
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
    # Of an arc or epoch: how many it was made from, and how many sessions are below it.
    children: int | None = None
    sessions: int | None = None
    level: Level | None = None
    confidence: float | None = None
    is_degraded: bool = False
    # Its text had to be erased for good.
    erased: bool = False
    # It rests on quarantined content, so its text is withheld until it is made again.
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
    """An item on a page of an expansion of the past: of which session it is.

    An arc or a session summary has its `history_kind`; its seqs are 0 where it covers several conversations.
    """

    conversation_id: int | None = None
    history_kind: HistoryKind | None = None


@dataclass(frozen=True)
class SessionExpansion:
    """One page of what a session, arc or epoch summary rests on.

    Items lie in the order of the past: an arc before its sessions, a session before its summaries and messages.
    `cursor` continues it; None at the end.
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
    # The summary that was made instead of this one.
    superseded_by: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class SessionMatch:
    """A current session, arc or epoch summary that matches."""

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

    `relaxed`: too few hold every word, so these hold any of them.
    """

    query: str
    project: str | None
    matches: Annotated[tuple[SessionMatch, ...], Field(serialization_alias="items")]
    relaxed: bool = False
    next_offset: Annotated[int | None, Field(exclude=True)] = None
    next_cursor: str | None = field(default=None)


@dataclass(frozen=True)
class PastSection:
    """What a recall says of earlier sessions, with ids in it and ids without room.

    Of `cut_ids` only the first sentences are shown.
    """

    text: str = ""
    shown_ids: tuple[str, ...] = ()
    cut_ids: tuple[str, ...] = ()
    left_out_ids: tuple[str, ...] = ()

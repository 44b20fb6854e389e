"""The records and enumerations of session, arc and epoch summaries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from compaction.types import JobState
from conversations.types import Level


class HistoryKind(StrEnum):
    """What a summary covers: a conversation, some sessions, or some arcs."""

    SESSION = "session"
    ARC = "arc"
    EPOCH = "epoch"

    @property
    def depth(self) -> int:
        return list(HistoryKind).index(self)


class HistoryReason(StrEnum):
    """Why a summary was requested."""

    # The conversation has something new, and no message for a while.
    QUIET = "quiet"
    MANUAL = "manual"
    # A source was erased, replaced, or given another project.
    CHANGED = "changed"
    # A model is available again, and summaries made without one are regenerated.
    REDO = "redo"
    # A project has new or renewed sessions, or enough for an arc, or enough arcs for an epoch.
    PROJECT = "project"

    @property
    def is_redo(self) -> bool:
        """Whether summaries made without a model are regenerated."""
        return self in (HistoryReason.REDO, HistoryReason.MANUAL)

    @property
    def sees_quarantines(self) -> bool:
        """Whether items quarantined or released since cause a new summary."""
        return self in (HistoryReason.CHANGED, HistoryReason.MANUAL)


@dataclass(frozen=True)
class SessionSummaryRecord:
    """A session, arc or epoch summary; only sessions have `first_seq` and `last_seq`.

    `superseded_by_id` is the newer summary that replaced this one. An erased summary has no text.
    """

    summary_id: str
    workspace_id: int
    kind: HistoryKind
    depth: int
    content: str
    token_count: int
    earliest_at: datetime
    latest_at: datetime
    level: Level
    confidence: float
    model: str
    is_degraded: bool
    summary_hash: str
    created_at: datetime
    project_id: int | None = None
    conversation_id: int | None = None
    first_seq: int | None = None
    last_seq: int | None = None
    prompt_version: str = ""
    supersedes_id: str | None = None
    superseded_by_id: str | None = None
    erased_by_id: int | None = None


@dataclass(frozen=True)
class SessionSummaryResult:
    """The current session summary of a conversation, and whether it is new."""

    conversation_id: int
    created: bool
    summary: SessionSummaryRecord


@dataclass(frozen=True)
class RedoneHistory:
    """The result of a redo of a session, arc or epoch summary.

    `summary` is the current summary; `created` is true if it is new. `below` counts the regenerated summaries below it.
    Arcs and epochs above follow in the background.
    """

    summary_id: str
    created: bool
    below: int
    summary: SessionSummaryRecord


@dataclass(frozen=True)
class HistoryJobRecord:
    """A job that makes summaries of a conversation or of a project."""

    job_id: int
    conversation_id: int | None
    project_id: int | None
    reason: HistoryReason
    state: JobState
    requested_at: datetime
    attempts: int
    leased_until: datetime | None = None
    finished_at: datetime | None = None
    last_error: str = ""
    # The name of the project, also of a job for a conversation of it.
    project: str | None = None
    title: str | None = None

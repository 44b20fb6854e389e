"""The records of a window on the lineage: what stands between two seqs, now or when a run was through."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from compaction.types import BoundaryRecord, CompactionDecision, Outcome, Reason
from conversations.types import ConversationRecord, Level, Role
from retrieval.types import MessageSpan


@dataclass(frozen=True)
class WindowSummary:
    """A summary that reaches into the window. `active`: it is what a model sees of its messages at that moment.

    `superseded`: another one of the same sources has been made instead.
    """

    summary_id: str
    depth: int
    first_seq: int
    last_seq: int
    token_count: int
    source_tokens: int
    level: Level
    retention: float | None
    is_degraded: bool
    active: bool
    superseded: bool
    run_id: str
    created_at: datetime


@dataclass(frozen=True)
class WindowBundle:
    """Summaries of one depth side by side, too narrow to be told one by one, none of which a model sees.

    `token_count` is that of the largest of them; `messages` are those they were made from, `source_tokens` theirs.
    """

    depth: int
    first_seq: int
    last_seq: int
    summaries: int
    token_count: int
    source_tokens: int
    messages: int


@dataclass(frozen=True)
class WindowMessage:
    """A message of a window that is narrow enough to tell each one. `raw`: no summary stands for it at that moment."""

    message_id: int
    seq: int
    role: Role
    token_count: int
    raw: bool


@dataclass(frozen=True)
class WindowRun:
    """A run that has made summaries: how far the messages went that it knew, and what it was for."""

    run_id: str
    finished_at: datetime
    last_seq: int
    summaries: int
    reason: Reason | None
    outcome: Outcome | None


@dataclass(frozen=True)
class LineageWindow:
    """What stands between two seqs of a conversation, at a moment.

    `first_seq` and `last_seq` are the window, `message_count` the messages that there were at that moment. From
    `tail_from_seq` on nothing is ever summarized. `raw` are the stretches that no summary stood for. `messages` is None
    where the window holds too many to tell them one by one. `runs` are the newest of all that made summaries, oldest
    first, whatever the window and the moment. `bundles` stand for summaries that the resolution asked for is too low to
    tell one by one.
    """

    conversation: ConversationRecord
    pressure: CompactionDecision
    first_seq: int
    last_seq: int
    message_count: int
    tail_from_seq: int
    summaries: tuple[WindowSummary, ...]
    raw: tuple[MessageSpan, ...]
    messages: tuple[WindowMessage, ...] | None
    runs: tuple[WindowRun, ...]
    boundaries: tuple[BoundaryRecord, ...] = ()
    bundles: tuple[WindowBundle, ...] = ()
    as_of_run: str | None = None

"""Create projects with sessions, and summarize them with the real services."""

from __future__ import annotations

from collections.abc import Iterable

from compaction.engine import CompactionEngine
from compaction.history.history_worker import HistoryWorker
from compaction.history.models import HistoryJob, SessionSummary
from compaction.history.session_history import SessionHistory
from conversations.models import Workspace
from conversations.types import ConversationRecord
from conversations.work.queue import WorkState
from tests.factories import a_conversation, say

SIZES = {"sessions_per_arc": 2, "arcs_per_epoch": 2, "leaf_chunk_tokens": 400, "leaf_target_tokens": 64}
TALK = "The harbour's database moved to port 5433 because service-7 still holds 5432; docs/ports.md says so."


def a_session(number: int, *, project: str | None = "harbour", workspace: Workspace | None = None, length: int = 6):
    """A conversation of a project without a session summary."""
    texts = (f"{TALK} Session {number}, remark {remark}." for remark in range(length))
    return a_conversation(*texts, session_id=f"{project}-{number}", project=project, workspace=workspace)


def go_on(conversation: ConversationRecord, *texts: str) -> None:
    say(conversation.conversation_id, *(texts or (f"{TALK} It goes on.",)))


def summarize(conversations: Iterable[ConversationRecord]) -> None:
    """Summarize each session, and run all jobs that follow from it."""
    for conversation in conversations:
        SessionHistory.from_settings().summarize_session(conversation_id=conversation.conversation_id)
    work_off()


def work_off() -> None:
    while HistoryWorker.from_settings().work():
        pass


def all_done() -> bool:
    """Whether no job is left; those that are due are started."""
    HistoryWorker.from_settings().sweep()
    return not HistoryJob.objects.filter(state__in=(WorkState.QUEUED, WorkState.LEASED)).exists()


def arcs_and_an_epoch() -> list[ConversationRecord]:
    """Five sessions: two arcs, one of them renewed as a session went on, and an epoch; one session is in no arc.

    It needs `SIZES`.
    """
    sessions = [a_session(number, length=20) for number in range(5)]
    CompactionEngine.from_settings().compact(conversation_id=sessions[0].conversation_id)
    summarize(sessions)
    go_on(sessions[2])
    summarize([sessions[2]])
    return sessions


def current(depth: int) -> list[SessionSummary]:
    return list(SessionSummary.objects.current().filter(depth=depth).order_by("earliest_at", "summary_id"))


def members(summary: SessionSummary) -> list[SessionSummary]:
    return [link.child for link in summary.child_links.select_related("child").order_by("ordinal")]

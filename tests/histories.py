"""Create projects with sessions, and summarize them with the real services."""

from __future__ import annotations

from collections.abc import Iterable

from compaction.history.history_worker import HistoryWorker
from compaction.history.models import SessionSummary
from compaction.history.session_history import SessionHistory
from conversations.models import Workspace
from conversations.types import ConversationRecord, NewMessage, Role
from tests.factories import a_conversation, a_store

TALK = "The harbour's database moved to port 5433 because service-7 still holds 5432; docs/ports.md says so."


def a_session(number: int, *, project: str | None = "harbour", workspace: Workspace | None = None, length: int = 6):
    """A conversation of a project without a session summary."""
    texts = (f"{TALK} Session {number}, remark {remark}." for remark in range(length))
    return a_conversation(*texts, session_id=f"{project}-{number}", project=project, workspace=workspace)


def go_on(conversation: ConversationRecord, *texts: str) -> None:
    messages = [NewMessage(Role.USER, text) for text in texts or (f"{TALK} It goes on.",)]
    a_store().append_messages(conversation_id=conversation.conversation_id, messages=messages)


def summarize(conversations: Iterable[ConversationRecord]) -> None:
    """Summarize each session, and run all jobs that follow from it."""
    for conversation in conversations:
        SessionHistory.from_settings().summarize_session(conversation_id=conversation.conversation_id)
    work_off()


def work_off() -> None:
    while HistoryWorker.from_settings().work():
        pass


def current(depth: int) -> list[SessionSummary]:
    return list(SessionSummary.objects.current().filter(depth=depth).order_by("earliest_at", "summary_id"))


def members(summary: SessionSummary) -> list[SessionSummary]:
    return [link.child for link in summary.child_links.select_related("child").order_by("ordinal")]

"""A project with a past, and its readers."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from compaction.history.models import SessionSummary
from conversations.models import Project
from conversations.scope import Scope
from conversations.types import ConversationRecord
from retrieval.history.project_history import ProjectHistory
from tests.factories import a_store, a_workspace
from tests.pasts import a_project, a_session, a_session_summary, a_summary_over
from tests.summaries import a_summary_of


class Past(NamedTuple):
    """Six sessions: two arcs of two below an epoch, one session after them, and one without a summary."""

    project: Project
    conversations: list[ConversationRecord]
    sessions: list[SessionSummary]
    arcs: list[SessionSummary]
    epoch: SessionSummary


SAID = ("We chose port {n}.", "Noted: the port is {n}.", "And the lighthouse?", "It stays in stretch {n}.", "Good.")


@pytest.fixture(scope="module")
def past(module_rows: None) -> Past:
    project = a_project()
    conversations = []
    for n in range(6):
        texts = [text.format(n=5430 + n) * 3 for text in SAID]
        conversations.append(a_session(project, *texts, session_id=f"session-of-{n}", title=f"Day {n}"))
        a_summary_of(a_store(), conversations[-1].conversation_id, seqs=[1, 2], content=f"Port {5430 + n} was chosen.")
    sessions = [
        a_session_summary(each.conversation_id, f"In session {n} port {5430 + n} was chosen for the harbour.")
        for n, each in enumerate(conversations[:5])
    ]
    arcs = [a_summary_over(sessions[:2], "Two ports came first."), a_summary_over(sessions[2:4], "Two more followed.")]
    return Past(project, conversations, sessions, arcs, a_summary_over(arcs, "Ports were settled in this epoch."))


@pytest.fixture
def history(db: None) -> ProjectHistory:
    return ProjectHistory.from_settings(Scope(a_workspace().pk))

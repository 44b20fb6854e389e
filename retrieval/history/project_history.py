"""Read the history of a project, across its conversations.

A session summary covers one conversation, an arc several sessions, an epoch several arcs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from compaction.history.types import HistoryKind
from conversations.content.tokens import TokenEstimator
from conversations.errors import NotFound, param_error
from conversations.humanize import counted
from conversations.models import Project
from conversations.scope import EVERYTHING, Scope
from conversations.sql import rows, snapshot
from retrieval.history.session_expansion import SessionOpener
from retrieval.history.session_search import SessionSearch
from retrieval.history.timelines import SQL, entries, project_named, session_before
from retrieval.history.types import ProjectOutline, SessionAgo, TimelineEntry
from retrieval.policy import RetrievalPolicy


@dataclass(frozen=True)
class ProjectHistory(SessionOpener, SessionSearch):
    """Reads the session, arc and epoch summaries of a project."""

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> ProjectHistory:
        return cls(policy=RetrievalPolicy.from_settings(), tokens=TokenEstimator.from_settings(), scope=scope)

    def list_projects(self, *, after_name: str | None = None, limit: int = 100) -> list[ProjectOutline]:
        """List projects by name, with their numbers of sessions, arcs and epochs."""
        owned = "true" if self.scope.workspace_id is None else "p.workspace_id = %(workspace_id)s"
        values = {"workspace_id": self.scope.workspace_id, "after_name": after_name, "limit": limit}
        return [ProjectOutline(*row) for row in rows(SQL["projects"].format(owned=owned), values)]

    def timeline(
        self,
        *,
        project: str | None = None,
        conversation_id: int | None = None,
        kind: HistoryKind | str | None = None,
        after: Sequence[Any] | None = None,
        limit: int = 20,
    ) -> list[TimelineEntry]:
        """List the sessions, arcs and epochs of a project, newest first.

        Name the project, or a conversation of it; a conversation without a project is listed alone. Default: all
        projects. An arc summarizes several sessions, and an epoch several arcs. `part_of` is the arc or epoch that
        contains the entry. A session without an id has no summary yet. The first entries of a page have their texts, as
        far as LCM_MAX_EXPAND_TOKENS allows; lcm_expand_session opens any entry by its id. Raises NotFound.
        """
        with snapshot(settings=self.policy.search_settings):
            owner = self._project(project, conversation_id)
            found = entries(
                owner,
                scope=self.scope,
                kind=None if kind is None else HistoryKind(kind),
                conversation_ids=() if owner is not None or conversation_id is None else (conversation_id,),
                behind=after,
                limit=limit,
            )
        return _with_first_texts(found, self.policy.max_expand_tokens)

    def session_ago(self, *, conversation_id: int, sessions_ago: int = 1) -> SessionAgo:
        """Get the session that is `sessions_ago` before a conversation in its project.

        Sessions are ordered by the time they were opened. Sessions of subagents and sessions without a message do not
        count. The session is returned with its summary, if it has one yet, and with the calls that read more of it.
        Raises NotFound, also for a conversation without a project.
        """
        with snapshot(settings=self.policy.search_settings):
            project = self._project(None, conversation_id)
            if project is None:
                raise NotFound(f"Conversation {conversation_id} belongs to no project; open it again with one.")
            before = session_before(conversation_id, sessions_ago=sessions_ago)
            if before is None:
                sessions = counted(sessions_ago, "session")
                raise NotFound(f"The project of this conversation does not have {sessions} before it.")
            [session] = entries(
                project, scope=self.scope, kind=HistoryKind.SESSION, conversation_ids=(before,), limit=1
            )
        return SessionAgo(
            conversation_id=conversation_id,
            sessions_ago=sessions_ago,
            project=project.name,
            session=session,
            calls=_calls(session),
        )

    def _project(self, name: str | None, conversation_id: int | None) -> Project | None:
        """Find the named project or the project of the conversation, if it has one."""
        if name is not None and conversation_id is not None:
            raise param_error("project", "Give either project or conversation_id, not both.")
        if conversation_id is not None:
            return self.scope.conversation(conversation_id).project
        return None if name is None else project_named(name, self.scope)


def _with_first_texts(found: Sequence[TimelineEntry], most_tokens: int) -> list[TimelineEntry]:
    """Keep the first texts, up to `most_tokens` tokens; drop the texts after them."""
    shown = []
    for entry in found:
        if entry.content is not None:
            most_tokens -= entry.token_count or 0
        shown.append(entry if most_tokens >= 0 else replace(entry, content=None))
    return shown


def _calls(session: TimelineEntry) -> tuple[str, ...]:
    """The tool calls with which an agent can read more of a session."""
    number, last = session.conversation_id, session.message_count
    calls = (
        f"lcm_expand_range(conversation_id={number}, from_seq=1, to_seq={last}, include_messages=true)",
        f"lcm_grep(conversation_id={number}, query=...)",
    )
    if session.id is None:
        return calls
    return (f'lcm_expand_session(summary_id="{session.id}", depth=-1, include_messages=true)', *calls)

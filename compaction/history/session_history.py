"""Memory across conversations: makes session, arc and epoch summaries.

A session summary rests on the context of its conversation, an arc on session summaries of its project, an epoch on
arcs. What changes below a summary is taken over by a new row that supersedes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pglock
from django.db import transaction

from compaction.history import history_jobs
from compaction.history.history_maker import HistoryMaker, write
from compaction.history.history_sources import HistorySource, sources_of_conversation, sources_of_members
from compaction.history.models import HistoryJob, SessionSummary
from compaction.history.types import HistoryJobRecord, HistoryKind, HistoryReason, SessionSummaryResult
from compaction.policy import CompactionPolicy, HistoryPolicy
from compaction.run import compaction_lock
from compaction.summarizing.escalation import Escalation
from compaction.summarizing.summarizer_chain import escalation_of
from conversations import sql
from conversations.errors import Conflict, ConversationBusy, Invalid
from conversations.models import Conversation, Project
from conversations.scope import EVERYTHING, Scope
from conversations.store.conversations import ConversationStore
from conversations.work.queue import Lease

_STATEMENTS = sql.load("compaction/history.sql")


@contextmanager
def project_lock(project_id: int) -> Iterator[None]:
    """Hold the project's advisory lock, or raise ConversationBusy at once."""
    with pglock.advisory(f"lcm.history.{project_id}", timeout=0) as acquired:
        if not acquired:
            raise ConversationBusy(f"The arcs of project {project_id} are being made already; try again shortly.")
        yield


@dataclass(frozen=True)
class SessionHistory:
    """Makes and renews the summaries of sessions, arcs and epochs."""

    store: ConversationStore
    policy: HistoryPolicy
    compaction: CompactionPolicy
    escalation: Escalation

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> SessionHistory:
        store = ConversationStore.from_settings(scope)
        compaction = CompactionPolicy.from_settings()
        return cls(
            store, HistoryPolicy.from_settings(), compaction, escalation_of(compaction.summarizer, tokens=store.tokens)
        )

    def summarize_session(self, *, conversation_id: int) -> SessionSummaryResult:
        """Make a conversation's session summary, or renew it if there is something new.

        A degraded one is made again. Arcs and epochs follow in the background. Raises Invalid if the conversation has
        no text; ConversationBusy while it is compacted or summarized.
        """
        conversation = self.store.scope.conversation(conversation_id)
        before = _current_of(conversation.pk)
        found = self.make_session(conversation_id=conversation.pk, reason=HistoryReason.MANUAL)
        if found is None:
            raise Invalid("This conversation has no text that could be summarized.", code="nothing_to_summarize")
        is_new = before is None or before.pk != found.pk
        return SessionSummaryResult(conversation.pk, created=is_new, summary=found.as_record())

    def request_session(self, *, conversation_id: int) -> HistoryJobRecord:
        """Leave the session summary of a conversation to a worker."""
        conversation = self.store.scope.conversation(conversation_id)
        job_id = history_jobs.request(
            workspace_id=conversation.workspace_id, reason=HistoryReason.MANUAL, conversation_id=conversation.pk
        )
        return self.get_job(job_id=job_id)

    def get_job(self, *, job_id: int) -> HistoryJobRecord:
        """One job; NotFound if there is none."""
        return self.store.scope.find(HistoryJob.objects.all(), "job", job_id, pk=job_id).as_record()

    def make_session(
        self, *, conversation_id: int, reason: HistoryReason, lease: Lease[HistoryJob] | None = None
    ) -> SessionSummary | None:
        """The current session summary, made or renewed if needed; None without text.

        No transaction is open while a summarizer works. The lock keeps compactions and erasures out meanwhile.
        """
        with compaction_lock(conversation_id):
            conversation = self.store.scope.conversation(conversation_id)
            current = _current_of(conversation_id)
            if current is not None and not _is_due(current, conversation, reason):
                return current
            sources = sources_of_conversation(conversation_id)
            if not any(each.is_readable for each in sources):
                return current
            if reason is HistoryReason.REDO and current is not None and _only_sources_wait(current, sources):
                return current
            made = self._maker(conversation).made(
                HistoryKind.SESSION,
                sources,
                workspace_id=conversation.workspace_id,
                project_id=conversation.project_id,
                conversation_id=conversation_id,
                supersedes=current,
            )
            if current is not None and _gains_nothing(made, current):
                return current
            with transaction.atomic():
                held = self.store.scope.conversation(conversation_id, locked=True)
                if held.project_id != conversation.project_id:
                    raise Conflict("The conversation was given a project meanwhile; try again.", code="project_changed")
                if lease is not None:
                    lease.renew(attempts=1)
                write(made, sources)
                if made.project_id is not None:
                    history_jobs.request(
                        workspace_id=made.workspace_id, reason=HistoryReason.PROJECT, project_id=made.project_id
                    )
        return made

    def make_of_project(
        self, *, project_id: int, reason: HistoryReason, lease: Lease[HistoryJob] | None = None
    ) -> bool:
        """Renew and make the arcs of a project, then its epochs; false if time ran out."""
        deadline = time.monotonic() + self.policy.deadline_seconds
        project = Project.objects.get(pk=project_id)
        with project_lock(project_id):
            for kind, enough in (
                (HistoryKind.ARC, self.policy.sessions_per_arc),
                (HistoryKind.EPOCH, self.policy.arcs_per_epoch),
            ):
                for summary_id in self._to_renew(project_id, kind, reason):
                    if time.monotonic() > deadline:
                        return False
                    self._renew(project, kind, summary_id, lease)
                while len(members := self._members_to_be(project_id, kind, enough)) == enough:
                    if time.monotonic() > deadline:
                        return False
                    self._make(project, kind, members, None, lease)
        return True

    def _to_renew(self, project_id: int, kind: HistoryKind, reason: HistoryReason) -> list[str]:
        values = {"project_id": project_id, "depth": kind.depth}
        stale = sql.rows(_STATEMENTS["stale_of_project"], values)
        waiting = sql.rows(_STATEMENTS["waiting_of_project"], values) if reason is HistoryReason.REDO else []
        return list(dict.fromkeys(summary_id for (summary_id,) in (*stale, *waiting)))

    def _members_to_be(self, project_id: int, kind: HistoryKind, limit: int) -> list[str]:
        values = {"project_id": project_id, "depth": kind.depth - 1, "limit": limit}
        return [summary_id for (summary_id,) in sql.rows(_STATEMENTS["members_to_be"], values)]

    def _renew(self, project: Project, kind: HistoryKind, summary_id: str, lease: Lease[HistoryJob] | None) -> None:
        members = [each for (each,) in sql.rows(_STATEMENTS["current_members"], [summary_id])]
        self._make(project, kind, members, SessionSummary.objects.readable().get(pk=summary_id), lease)

    def _make(
        self,
        project: Project,
        kind: HistoryKind,
        members: Sequence[str],
        supersedes: SessionSummary | None,
        lease: Lease[HistoryJob] | None,
    ) -> None:
        """Make and write one arc or epoch of these members, which are current."""
        sources = sources_of_members(members)
        if not any(each.is_readable for each in sources):
            return
        made = self._maker().made(
            kind, sources, workspace_id=project.workspace_id, project_id=project.pk, supersedes=supersedes
        )
        if supersedes is not None and _has_members(supersedes, members) and _gains_nothing(made, supersedes):
            return
        with transaction.atomic():
            # An erasure holds the project, too: what it takes is not written again here.
            Project.objects.select_for_update(no_key=True).get(pk=project.pk)
            if not _are_current(sources):
                raise Conflict("A member was renewed or erased meanwhile; try again.", code="members_changed")
            if lease is not None:
                lease.renew(attempts=1)
            write(made, sources)

    def _maker(self, conversation: Conversation | None = None) -> HistoryMaker:
        """The maker with the settings of the site, or a conversation's own."""
        if conversation is None:
            return HistoryMaker(self.compaction, self.escalation, self.store.tokens)
        policy = self.compaction.overridden(conversation.overrides)
        has_own = policy.summarizer != self.compaction.summarizer
        escalation = escalation_of(policy.summarizer, tokens=self.store.tokens) if has_own else self.escalation
        return HistoryMaker(policy, escalation, self.store.tokens)


def _current_of(conversation_id: int) -> SessionSummary | None:
    return SessionSummary.objects.readable().current().filter(conversation_id=conversation_id).first()


def _is_due(current: SessionSummary, conversation: Conversation, reason: HistoryReason) -> bool:
    return (
        (current.last_seq or 0) != conversation.head_seq
        or current.project_id != conversation.project_id
        or current.erased_by_id is not None
        or (current.is_degraded and reason in (HistoryReason.REDO, HistoryReason.MANUAL))
    )


def _only_sources_wait(current: SessionSummary, sources: Sequence[HistorySource]) -> bool:
    """Whether it lacks a model only in its sources, and these are still the same."""
    if current.quality.get("lack") is not None or current.erased_by_id is not None:
        return False
    linked = current.memory_links.order_by("ordinal").values_list("memory_summary_id", "message_id")
    return [summary_id or f"msg_{message_id}" for summary_id, message_id in linked] == [each.id for each in sources]


def _gains_nothing(made: SessionSummary, current: SessionSummary) -> bool:
    """Whether one made without a model would only give way to another."""
    covers_more = (made.last_seq, made.project_id) != (current.last_seq, current.project_id)
    if covers_more or current.erased_by_id is not None or not current.is_degraded:
        return False
    # One whose texts were rejected no longer waits.
    still_waits = made.quality.get("waits") == current.quality.get("waits")
    return made.quality.get("lack") is not None and still_waits


def _has_members(summary: SessionSummary, members: Sequence[str]) -> bool:
    return list(summary.child_links.order_by("ordinal").values_list("child_id", flat=True)) == list(members)


def _are_current(sources: Sequence[HistorySource]) -> bool:
    """Whether all members are still current and as readable as when they were read."""
    now = SessionSummary.objects.current().filter(pk__in=[each.id for each in sources])
    readable = dict(now.values_list("pk", "erased_by_id"))
    return all(each.id in readable and each.is_readable == (readable[each.id] is None) for each in sources)

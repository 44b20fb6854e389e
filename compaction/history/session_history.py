"""Make session, arc and epoch summaries, the memory across conversations.

A session summary is made from the context of its conversation, an arc from session summaries of its project, an epoch
from arcs. When a source changes, a new row supersedes the summary.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pglock
from django.db import transaction
from django.db.models import Q, QuerySet

from compaction.history import history_jobs
from compaction.history.history_maker import HistoryMaker, write
from compaction.history.history_renewal import (
    are_current,
    current_in_line,
    current_members,
    current_of,
    damaged,
    gains_nothing,
    has_members,
    is_damaged_or_outdated,
    is_due,
    only_sources_wait,
    to_renew,
)
from compaction.history.history_sources import sources_of_conversation, sources_of_members, withheld_sessions
from compaction.history.models import HistoryJob, SessionSummary
from compaction.history.types import HistoryJobRecord, HistoryKind, HistoryReason, RedoneHistory, SessionSummaryResult
from compaction.policy import CompactionPolicy, HistoryPolicy
from compaction.run import compaction_lock
from compaction.sources import withheld_items
from compaction.summarizing.escalation import Escalation
from compaction.summarizing.summarizer_chain import escalation_of
from compaction.types import JobState
from conversations import sql
from conversations.errors import Conflict, ConversationBusy, Invalid
from conversations.models import Conversation, Project
from conversations.scope import EVERYTHING, Scope
from conversations.store.conversations import ConversationStore
from conversations.work.queue import Lease

_STATEMENTS = sql.load("compaction/history.sql")


class QuarantinesChanged(Conflict):
    """A source was quarantined or released while a summarizer read it."""

    code = "quarantines_changed"
    retryable = True


def _jobs() -> QuerySet[HistoryJob]:
    return HistoryJob.objects.select_related("conversation__project", "project")


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
        return cls(store, HistoryPolicy.from_settings(), compaction, escalation_of(compaction.summarizer))

    def summarize_session(self, *, conversation_id: int) -> SessionSummaryResult:
        """Make a conversation's session summary, or renew it if there is something new.

        A degraded or damaged summary is regenerated. Arc and epoch summaries of the project follow in the background.
        Raises NotFound; Invalid `nothing_to_summarize` if the conversation has no text. Two errors are retryable:
        ConversationBusy while the conversation is compacted or summarized, and QuarantinesChanged if one of its items
        is quarantined or released meanwhile.
        """
        conversation = self.store.scope.conversation(conversation_id)
        before = current_of(conversation.pk)
        found = self.make_session(conversation_id=conversation.pk, reason=HistoryReason.MANUAL)
        if found is None:
            raise Invalid("This conversation has no text to summarize.", code="nothing_to_summarize")
        is_new = before is None or before.pk != found.pk
        return SessionSummaryResult(conversation.pk, created=is_new, summary=found.as_record())

    def request_session(self, *, conversation_id: int) -> HistoryJobRecord:
        """Queue a job that makes the session summary of a conversation."""
        conversation = self.store.scope.conversation(conversation_id)
        job_id = history_jobs.request(
            workspace_id=conversation.workspace_id, reason=HistoryReason.MANUAL, conversation_id=conversation.pk
        )
        return self.get_job(job_id=job_id)

    def get_job(self, *, job_id: int) -> HistoryJobRecord:
        """Return one job that makes session, arc or epoch summaries; raises NotFound."""
        return self.store.scope.find(_jobs(), "job", job_id, pk=job_id).as_record()

    def list_jobs(
        self,
        *,
        conversation_id: int | None = None,
        project: str | None = None,
        state: JobState | str | None = None,
        before_id: int | None = None,
        limit: int = 50,
    ) -> list[HistoryJobRecord]:
        """List jobs that make session, arc and epoch summaries, newest first.

        `project` lists the jobs of the project and of its sessions. Raises NotFound if there is no such conversation.
        """
        jobs = self.store.scope.filter_rows(_jobs(), conversation_id=conversation_id, state=state, job_id__lt=before_id)
        if project is not None:
            jobs = jobs.filter(Q(project__name=project) | Q(conversation__project__name=project))
        return [job.as_record() for job in jobs.order_by("-job_id")[:limit]]

    def redo_session(self, *, summary_id: str) -> RedoneHistory:
        """Regenerate a degraded or damaged session, arc or epoch summary.

        Degraded or damaged summaries below it are regenerated first. New summaries supersede the old ones, which are
        kept. Arcs and epochs above follow in the background. A summary that is neither degraded nor damaged stays as it
        is. If the given summary is superseded, its current successor is used. Raises NotFound; ConversationBusy,
        retryable, while one of these summaries is being made.
        """
        before = self._newest(summary_id)
        below = sum(self._redo(each) for each in self._to_redo_below(before))
        self._redo(before)
        now = current_in_line(before.pk)
        is_new = now.pk != before.pk
        if is_new and now.project_id is not None:
            history_jobs.request(workspace_id=now.workspace_id, reason=HistoryReason.PROJECT, project_id=now.project_id)
        return RedoneHistory(summary_id, created=is_new, below=below, summary=now.as_record())

    def request_redo_session(self, *, summary_id: str) -> HistoryJobRecord:
        """Queue the redo of a summary and of those below it; return its job."""
        before = self._newest(summary_id)
        jobs = [request_redo(each) for each in (*self._to_redo_below(before), before)]
        return self.get_job(job_id=jobs[-1])

    def make_session(
        self, *, conversation_id: int, reason: HistoryReason, lease: Lease[HistoryJob] | None = None
    ) -> SessionSummary | None:
        """Return the current session summary, made or renewed if needed, or None.

        Returns None if there is no summary, and no text to summarize.

        No transaction is open while a summarizer works. The lock keeps compactions and erasures out meanwhile.
        """
        with compaction_lock(conversation_id):
            conversation = self.store.scope.conversation(conversation_id)
            current = current_of(conversation_id)
            # A damaged text, or one whose sources' quarantines changed, is replaced even without a model.
            is_wrong = current is not None and is_damaged_or_outdated(current, reason)
            if current is not None and not is_wrong and not is_due(current, conversation, reason):
                return current
            withheld = withheld_items(conversation_id)
            sources = sources_of_conversation(conversation_id)
            if not sources or not (is_wrong or any(each.is_readable for each in sources)):
                return current
            if current is not None and not is_wrong and reason.is_redo and only_sources_wait(current, sources):
                return current
            made = self._maker(conversation).make(
                HistoryKind.SESSION,
                sources,
                workspace_id=conversation.workspace_id,
                project_id=conversation.project_id,
                conversation_id=conversation_id,
                supersedes=current,
            )
            if current is not None and not is_wrong and gains_nothing(made, current):
                return current
            with transaction.atomic():
                held = self.store.scope.conversation(conversation_id, locked=True)
                if held.project_id != conversation.project_id:
                    raise Conflict("The conversation got another project meanwhile; try again.", code="project_changed")
                # Quarantining locks the row, too: it is either seen here, or later than the summary's `created_at`.
                if withheld_items(conversation_id) != withheld:
                    raise QuarantinesChanged("Something was quarantined or released meanwhile; try again.")
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
        """Renew and make a project's arcs, then epochs; return False if time ran out."""
        deadline = time.monotonic() + self.policy.deadline_seconds
        project = Project.objects.get(pk=project_id)
        with project_lock(project_id):
            for kind, enough in (
                (HistoryKind.ARC, self.policy.sessions_per_arc),
                (HistoryKind.EPOCH, self.policy.arcs_per_epoch),
            ):
                for summary_id in to_renew(project_id, kind, reason):
                    if time.monotonic() > deadline:
                        return False
                    self._renew(project, summary_id, lease)
                while len(members := self._next_members(project_id, kind, enough)) == enough:
                    if time.monotonic() > deadline:
                        return False
                    self._make(project, kind, members, None, lease)
        return True

    def _next_members(self, project_id: int, kind: HistoryKind, limit: int) -> list[str]:
        values = {"project_id": project_id, "depth": kind.depth - 1, "limit": limit}
        return [summary_id for (summary_id,) in sql.rows(_STATEMENTS["members_to_be"], values)]

    def renew(self, summary_id: str) -> None:
        """Regenerate this arc or epoch if needed: see `to_renew`."""
        row = SessionSummary.objects.select_related("project").get(pk=summary_id)
        assert row.project is not None, "arcs and epochs have a project"
        with project_lock(row.project.pk):
            if summary_id in to_renew(row.project.pk, HistoryKind(row.kind), HistoryReason.MANUAL):
                self._renew(row.project, summary_id, None)

    def _renew(self, project: Project, summary_id: str, lease: Lease[HistoryJob] | None) -> None:
        current = SessionSummary.objects.readable().get(pk=summary_id)
        self._make(project, HistoryKind(current.kind), current_members(summary_id), current, lease)

    def _make(
        self,
        project: Project,
        kind: HistoryKind,
        members: Sequence[str],
        supersedes: SessionSummary | None,
        lease: Lease[HistoryJob] | None,
    ) -> None:
        """Make and write one arc or epoch from these members, which must be current."""
        withheld = withheld_sessions(project.workspace_id) & frozenset(members)
        sources = sources_of_members(members, withheld=withheld)
        if all(each.is_erased for each in sources):
            return
        made = self._maker().make(
            kind, sources, workspace_id=project.workspace_id, project_id=project.pk, supersedes=supersedes
        )
        is_same = supersedes is not None and has_members(supersedes, members)
        if supersedes is not None and is_same and gains_nothing(made, supersedes) and not damaged([supersedes.pk]):
            return
        with transaction.atomic():
            # An erasure locks the project, too, so an erased text cannot be written again here.
            Project.objects.select_for_update(no_key=True).get(pk=project.pk)
            if not are_current(sources):
                raise Conflict("A source was renewed or erased meanwhile; try again.", code="members_changed")
            if withheld_sessions(project.workspace_id) & frozenset(members) != withheld:
                raise QuarantinesChanged("Something was quarantined or released meanwhile; try again.")
            if lease is not None:
                lease.renew(attempts=1)
            write(made, sources)

    def _maker(self, conversation: Conversation | None = None) -> HistoryMaker:
        """Build the maker with the site's settings, overridden by the conversation's."""
        if conversation is None:
            return HistoryMaker(self.compaction, self.escalation, self.store.tokens)
        policy = self.compaction.overridden(conversation.overrides)
        has_own = policy.summarizer != self.compaction.summarizer
        escalation = escalation_of(policy.summarizer) if has_own else self.escalation
        return HistoryMaker(policy, escalation, self.store.tokens)

    def _newest(self, summary_id: str) -> SessionSummary:
        rows = SessionSummary.objects.all()
        found = self.store.scope.find(rows, "session summary", summary_id, summary_id=summary_id)
        return current_in_line(found.pk)

    def _to_redo_below(self, summary: SessionSummary) -> Iterator[SessionSummary]:
        """Yield the summaries below this one that must be regenerated, sources first.

        These are degraded, damaged or withheld, or have such a summary below them.
        """
        if summary.kind == HistoryKind.SESSION:
            return
        members = list(SessionSummary.objects.filter(pk__in=current_members(summary.pk)).order_by("earliest_at", "pk"))
        wrong = damaged([each.pk for each in members]) | withheld_sessions(summary.workspace_id)
        for member in members:
            below = list(self._to_redo_below(member))
            yield from below
            if below or member.is_degraded or member.pk in wrong:
                yield member

    def _redo(self, summary: SessionSummary) -> bool:
        """Regenerate the summary if that gains anything; return whether it did."""
        if summary.conversation_id is None:
            self.renew(current_in_line(summary.pk).pk)
        else:
            self.make_session(conversation_id=summary.conversation_id, reason=HistoryReason.MANUAL)
        return current_in_line(summary.pk).pk != summary.pk


def request_redo(summary: SessionSummary) -> int:
    """Request a job that regenerates this summary; return its id."""
    is_session = summary.conversation_id is not None
    return history_jobs.request(
        workspace_id=summary.workspace_id,
        reason=HistoryReason.MANUAL,
        conversation_id=summary.conversation_id,
        project_id=None if is_session else summary.project_id,
    )

"""The tables of memory across conversations, and the jobs that write them."""

from __future__ import annotations

from typing import ClassVar, Self

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Now

from compaction.history.types import HistoryJobRecord, HistoryKind, HistoryReason, SessionSummaryRecord
from compaction.types import JobState
from conversations.models import AuditEntry, Conversation, Message, Project, Summary, Workspace
from conversations.models.columns import EnumField, SearchableQuerySet, record_of
from conversations.types import ContextItemType, Level


class SessionSummaryQuerySet(SearchableQuerySet):
    def current(self) -> Self:
        """Filter to summaries that no other summary supersedes."""
        return self.filter(superseded_by__isnull=True)


class SessionSummary(models.Model):
    """The summary of a session, an arc or an epoch; rows are immutable."""

    summary_id = models.TextField(primary_key=True)
    workspace = models.ForeignKey(Workspace, models.RESTRICT, related_name="+")
    project = models.ForeignKey(Project, models.RESTRICT, null=True, related_name="session_summaries")
    conversation = models.ForeignKey(Conversation, models.RESTRICT, null=True, related_name="session_summaries")
    depth = models.SmallIntegerField()
    kind = models.TextField(choices=[(kind.value, kind.value) for kind in HistoryKind])
    content = models.TextField()
    content_tsv = models.GeneratedField(
        expression=Func("content", function="lcm_tsv"), output_field=SearchVectorField(), db_persist=True
    )
    token_count = models.IntegerField()
    token_counter = models.TextField()
    # The messages of its conversation that a session summary covers.
    first_seq = models.BigIntegerField(null=True)
    last_seq = models.BigIntegerField(null=True)
    earliest_at = models.DateTimeField()
    latest_at = models.DateTimeField()
    level = models.TextField(choices=[(level.value, level.value) for level in Level])
    confidence = models.FloatField()
    model = models.TextField()
    prompt_version = models.TextField(default="", db_default="")
    retention = models.FloatField(null=True)
    quality = models.JSONField(default=dict)
    is_degraded = models.BooleanField(default=False, db_default=False)
    summary_hash = models.BinaryField()
    supersedes = models.OneToOneField("self", models.RESTRICT, null=True, related_name="superseded_by")
    erased_by = models.ForeignKey(AuditEntry, models.RESTRICT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Func(function="clock_timestamp"))

    objects = SessionSummaryQuerySet.as_manager()

    class Meta:
        db_table = "session_summaries"
        verbose_name_plural = "session summaries"
        indexes: ClassVar = [
            models.Index(fields=["project", "depth", "latest_at"], name="session_summaries_project_idx"),
            GinIndex(fields=["content_tsv"], name="session_summaries_tsv_gin_idx"),
            models.Index(fields=["summary_id"], condition=Q(is_degraded=True), name="session_summaries_degraded_idx"),
            models.Index(
                fields=["summary_id"], condition=Q(erased_by__isnull=False), name="session_summaries_erased_idx"
            ),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(kind="session", depth=0) | Q(kind="arc", depth=1) | Q(kind="epoch", depth=2),
                name="session_summaries_have_the_depth_of_their_kind",
            ),
            models.CheckConstraint(
                # Without the tests for NULL, a comparison with NULL would be unknown, which a CHECK lets pass.
                condition=Q(
                    depth=0,
                    conversation__isnull=False,
                    first_seq__isnull=False,
                    last_seq__isnull=False,
                    first_seq__gte=1,
                    last_seq__gte=F("first_seq"),
                )
                | Q(
                    depth__gt=0,
                    conversation__isnull=True,
                    first_seq__isnull=True,
                    last_seq__isnull=True,
                    project__isnull=False,
                ),
                name="session_summaries_cover_a_conversation_or_a_project",
            ),
            models.CheckConstraint(
                condition=Q(*(Q(level=level.value, confidence=level.confidence) for level in Level), _connector=Q.OR),
                name="session_summaries_have_the_confidence_of_their_level",
            ),
            models.CheckConstraint(
                condition=Q(earliest_at__lte=F("latest_at"), token_count__gte=0), name="session_summaries_add_up"
            ),
            # As `supersedes` is unique too, a conversation has one chain of summaries, with one current at its end.
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(conversation__isnull=False, supersedes__isnull=True),
                name="session_summaries_begin_once_per_conversation",
            ),
            models.CheckConstraint(condition=~Q(supersedes=F("summary_id")), name="session_summaries_supersede_others"),
        ]

    def __str__(self) -> str:
        return self.summary_id

    def as_record(self) -> SessionSummaryRecord:
        """Convert to a record; select `superseded_by` with the row to save a query."""
        by = getattr(self, "superseded_by", None)
        return record_of(
            SessionSummaryRecord,
            self,
            kind=HistoryKind(self.kind),
            level=Level(self.level),
            superseded_by_id=None if by is None else by.pk,
        )


class SessionSummaryChild(models.Model):
    """The link from an arc to one of its sessions, or from an epoch to an arc."""

    pk = models.CompositePrimaryKey("parent_id", "ordinal")
    parent = models.ForeignKey(SessionSummary, models.RESTRICT, related_name="child_links")
    child = models.ForeignKey(SessionSummary, models.RESTRICT, related_name="parent_links")
    ordinal = models.IntegerField()

    class Meta:
        db_table = "session_summary_children"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["parent", "child"], name="session_summary_children_are_listed_once"),
            models.CheckConstraint(
                condition=~Q(parent=F("child")) & Q(ordinal__gte=0), name="session_summary_children_are_others"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.parent_id} <- {self.child_id}"


class SessionSummaryMemory(models.Model):
    """The link from a session summary to a context item that it was made from."""

    pk = models.CompositePrimaryKey("summary_id", "ordinal")
    summary = models.ForeignKey(SessionSummary, models.RESTRICT, related_name="memory_links")
    ordinal = models.IntegerField()
    item_type = EnumField(ContextItemType, "context_item_type")
    message = models.ForeignKey(Message, models.RESTRICT, null=True, related_name="+")
    memory_summary = models.ForeignKey(Summary, models.RESTRICT, null=True, related_name="+")

    class Meta:
        db_table = "session_summary_memories"
        verbose_name_plural = "session summary memories"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(item_type="message", message__isnull=False, memory_summary__isnull=True)
                | Q(item_type="summary", memory_summary__isnull=False, message__isnull=True),
                name="session_summary_memories_point_at_one_thing",
            ),
            models.CheckConstraint(condition=Q(ordinal__gte=0), name="session_summary_memories_count_from_zero"),
            models.UniqueConstraint(
                fields=["summary", "message"],
                condition=Q(message__isnull=False),
                name="session_summary_memories_name_a_message_once",
            ),
            models.UniqueConstraint(
                fields=["summary", "memory_summary"],
                condition=Q(memory_summary__isnull=False),
                name="session_summary_memories_name_a_summary_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.summary_id} <- {self.memory_summary_id or f'msg_{self.message_id}'}"


class HistoryJob(models.Model):
    """A job: make a conversation's session summary, or a project's arcs and epochs.

    It has the columns of every table of jobs; see `conversations/work/queue.py`.
    """

    job_id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    conversation = models.ForeignKey(Conversation, models.CASCADE, null=True, related_name="history_jobs")
    project = models.ForeignKey(Project, models.CASCADE, null=True, related_name="history_jobs")
    reason = models.TextField(choices=[(reason.value, reason.value) for reason in HistoryReason])
    state = models.TextField(choices=[(state.value, state.value) for state in JobState], default=JobState.QUEUED)
    requested_at = models.DateTimeField(db_default=Now())
    run_after = models.DateTimeField(db_default=Now())
    leased_until = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    fence = models.IntegerField(default=0)
    attempts = models.IntegerField(default=0)
    last_error = models.TextField(default="")

    class Meta:
        db_table = "history_jobs"
        indexes: ClassVar = [
            models.Index(
                fields=["run_after"], condition=Q(state__in=["queued", "leased"]), name="history_jobs_open_idx"
            ),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(conversation__isnull=True) ^ Q(project__isnull=True),
                name="history_jobs_are_about_one_thing",
            ),
            # Requests are merged; one more may be queued while a job is leased.
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(state="queued", conversation__isnull=False),
                name="history_jobs_wait_once_per_conversation",
            ),
            models.UniqueConstraint(
                fields=["project"],
                condition=Q(state="queued", project__isnull=False),
                name="history_jobs_wait_once_per_project",
            ),
        ]

    def __str__(self) -> str:
        return f"job {self.job_id} ({self.state})"

    def as_record(self) -> HistoryJobRecord:
        project = self.project if self.conversation is None else self.conversation.project
        return record_of(
            HistoryJobRecord,
            self,
            reason=HistoryReason(self.reason),
            state=JobState(self.state),
            project=None if project is None else project.name,
            title=None if self.conversation is None else str(self.conversation),
        )

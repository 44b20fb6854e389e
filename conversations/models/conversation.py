"""Workspaces, projects, conversations, and their context, moves and journal."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from conversations.models.columns import EnumField, SeqRangesField, record_of
from conversations.types import ContextItemType, ConversationRecord, Counters, ParentLink


def today() -> date:
    """Return the current date in UTC, as `last_used_on` records it."""
    return datetime.now(UTC).date()


class Workspace(models.Model):
    """The owner of conversations; callers' queries see one workspace only."""

    workspace_id = models.BigAutoField(primary_key=True)
    name = models.TextField(unique=True)
    created_at = models.DateTimeField(db_default=Now())
    cold_after_days = models.IntegerField(null=True)

    class Meta:
        db_table = "workspaces"
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(cold_after_days__gte=1), name="workspaces_wait_at_least_a_day"),
        ]

    def __str__(self) -> str:
        return self.name


class Project(models.Model):
    """A named group of conversations in a workspace."""

    project_id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, models.RESTRICT, related_name="projects")
    name = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "projects"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "name"], name="projects_have_one_name_per_workspace"),
            # For foreign keys that keep a project and its conversations in one workspace.
            models.UniqueConstraint(fields=["project_id", "workspace"], name="projects_are_in_one_workspace"),
            models.CheckConstraint(condition=~Q(name=""), name="projects_have_a_name"),
        ]

    def __str__(self) -> str:
        return self.name


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def mark_used(self) -> int:
        """Record today as the day of last use; at most one write a day."""
        return self.filter(last_used_on__lt=today()).update(last_used_on=today())


class Conversation(models.Model):
    """A conversation with its settings and its counters."""

    conversation_id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, models.RESTRICT, related_name="conversations")
    session_id = models.TextField()
    title = models.TextField(null=True)  # noqa: DJ001 (the specification's column)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())
    metadata = models.JSONField(default=dict)
    overrides = models.JSONField(default=dict)
    next_seq = models.BigIntegerField(default=1)
    total_tokens = models.BigIntegerField(default=0)
    active_messages = models.BigIntegerField(default=0)
    active_tokens = models.BigIntegerField(default=0)
    rest_until_seq = models.BigIntegerField(default=0)
    chain_head = models.BinaryField(default=b"")
    last_used_on = models.DateField(db_default=Now())
    quarantined = models.IntegerField(default=0, db_default=0)
    cold_messages = models.BigIntegerField(default=0, db_default=0)
    project = models.ForeignKey(Project, models.RESTRICT, null=True, related_name="conversations")
    # The conversation that opened this one for a subagent, or that this one was forked from.
    parent = models.ForeignKey("self", models.RESTRICT, null=True, related_name="children")
    parent_link = models.TextField(null=True, choices=[(link.value, link.value) for link in ParentLink])  # noqa: DJ001

    # The number of moves of the head, and the seqs that are not on the path to the head; see `sql/branches/`.
    moves = models.IntegerField(default=0, db_default=0)
    inactive = SeqRangesField(default="{}", db_default="{}")
    # The number of entries in the conversation's journal.
    journal_size = models.BigIntegerField(default=0, db_default=0)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        db_table = "conversations"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "session_id"], name="conversations_have_one_session_per_workspace"
            ),
            models.UniqueConstraint(fields=["conversation_id", "workspace"], name="conversations_are_in_one_workspace"),
            models.CheckConstraint(
                condition=Q(parent__isnull=True, parent_link__isnull=True)
                | (Q(parent_link__in=[link.value for link in ParentLink]) & ~Q(parent=F("conversation_id"))),
                name="conversations_say_what_their_parent_is",
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.session_id

    @property
    def counters(self) -> Counters:
        return Counters(
            message_count=self.next_seq - 1,
            total_tokens=self.total_tokens,
            active_messages=self.active_messages,
            active_tokens=self.active_tokens,
            rest_until_seq=self.rest_until_seq,
        )

    @property
    def head_seq(self) -> int:
        """The seq of the message that the next one follows; 0 if there is none."""
        newest, ranges = self.next_seq - 1, self.inactive_ranges
        return ranges[-1][0] - 1 if ranges and ranges[-1][1] == newest else newest

    @property
    def inactive_ranges(self) -> tuple[tuple[int, int], ...]:
        """The ranges (first, last) of seqs that are not on the path to the head."""
        found = () if isinstance(self.inactive, str) else self.inactive
        return tuple((stretch.lower, stretch.upper - 1) for stretch in found)

    def is_active(self, seq: int) -> bool:
        """Whether the message with this seq is on the path to the head."""
        return not any(first <= seq <= last for first, last in self.inactive_ranges)

    @property
    def off_path(self) -> str:
        """The inactive ranges as the text of an int8multirange, for statements."""
        return "{" + ",".join(f"[{first},{last}]" for first, last in self.inactive_ranges) + "}"

    def note_use(self) -> None:
        """Record today as the day of last use; not in a snapshot, which is read-only."""
        if self.last_used_on < today():
            Conversation.objects.filter(pk=self.pk).mark_used()

    def as_record(self) -> ConversationRecord:
        project = None if self.project is None else self.project.name
        link = None if self.parent_link is None else ParentLink(self.parent_link)
        return record_of(ConversationRecord, self, project=project, parent_link=link, first_prompt=None)


class ContextItem(models.Model):
    """One item of the active context: a raw message, or a summary of many."""

    pk = models.CompositePrimaryKey("conversation_id", "ordinal")
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="context_items")
    ordinal = models.BigIntegerField()
    item_type = EnumField(ContextItemType, "context_item_type")
    message = models.ForeignKey("conversations.Message", models.RESTRICT, null=True, related_name="+")
    summary = models.ForeignKey("conversations.Summary", models.RESTRICT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    token_count = models.IntegerField()

    class Meta:
        db_table = "context_items"
        constraints = [
            models.CheckConstraint(
                condition=Q(item_type="message", message__isnull=False, summary__isnull=True)
                | Q(item_type="summary", summary__isnull=False, message__isnull=True),
                name="context_items_check",
            ),
            models.UniqueConstraint(
                fields=["message"], condition=Q(message__isnull=False), name="context_items_show_a_message_once"
            ),
            models.UniqueConstraint(
                fields=["summary"], condition=Q(summary__isnull=False), name="context_items_show_a_summary_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.ordinal}: {self.summary_id or f'msg_{self.message_id}'}"


class HeadMove(models.Model):
    """A move of the head: the message appended at `at_seq` follows `head_seq`.

    The database refuses to change or remove the row, and refuses gaps in `number`.
    """

    head_move_id = models.BigAutoField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="head_moves")
    number = models.IntegerField()
    at_seq = models.BigIntegerField()
    head_seq = models.BigIntegerField()
    recorded_at = models.DateTimeField(db_default=Now())
    reason = models.TextField(default="")

    class Meta:
        db_table = "head_moves"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["conversation", "number"], name="head_moves_are_numbered"),
            models.CheckConstraint(
                condition=Q(number__gte=1, head_seq__gte=0, head_seq__lt=F("at_seq")),
                name="head_moves_lead_to_a_message",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number}: to {self.head_seq}"


class JournalEntry(models.Model):
    """One entry of a host, not interpreted by LCM. Only an erasure can change it."""

    journal_entry_id = models.BigAutoField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="journal_entries")
    # The host's file that the entry comes from; "" for the session's own file.
    subpath = models.TextField(default="")
    position = models.BigIntegerField()
    uuid = models.TextField(null=True)  # noqa: DJ001 (an entry without one is not the same as another)
    # The JSON that `journal_text` wrote; None after an erasure. A text column, so that `row_seal` need not parse it.
    entry = models.TextField(null=True)  # noqa: DJ001
    entry_hash = models.BinaryField()
    recorded_at = models.DateTimeField(db_default=Now())
    erased_by = models.ForeignKey("conversations.AuditEntry", models.RESTRICT, null=True, related_name="+")

    class Meta:
        db_table = "journal_entries"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["conversation", "subpath", "position"], name="journal_entries_have_a_place_each"
            ),
            models.UniqueConstraint(
                fields=["conversation", "subpath", "uuid"],
                condition=Q(uuid__isnull=False),
                name="journal_entries_are_kept_once",
            ),
            models.CheckConstraint(condition=Q(position__gte=1), name="journal_entries_are_numbered_from_one"),
            models.CheckConstraint(
                condition=Q(entry__isnull=False) | Q(erased_by__isnull=False), name="journal_entries_hold_something"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subpath}#{self.position}"

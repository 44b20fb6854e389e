"""Tables of integrity: reports and findings, repair plans, scans, and retention."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Now

from compaction.types import JobState
from conversations.models import AuditEntry, Conversation, Workspace
from integrity.types import PlanState, Risk, ScanMode, Severity, StepState


def _empty_object() -> Value:
    return Value("{}", models.JSONField())


def _empty_list() -> Value:
    return Value("[]", models.JSONField())


def _one_of(values: type[StrEnum], first: StrEnum | None = None) -> Any:
    """Return a column that holds one of these values; `first` is its default."""
    default: dict[str, Any] = {} if first is None else {"default": first, "db_default": first.value}
    return models.TextField(choices=[(each.value, each.value) for each in values], **default)


class IntegrityReport(models.Model):
    """The result of a check: what was checked, and the violations by invariant."""

    report_id = models.TextField(primary_key=True)
    # The workspace or conversation that was checked. If both are NULL, the whole site was checked.
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, related_name="integrity_reports")
    conversation = models.ForeignKey(Conversation, models.CASCADE, null=True, related_name="integrity_reports")
    mode = _one_of(ScanMode)
    started_at = models.DateTimeField()
    # NULL while a scan is running.
    finished_at = models.DateTimeField(null=True)
    conversations_checked = models.BigIntegerField(default=0, db_default=0)
    messages_checked = models.BigIntegerField(default=0, db_default=0)
    # For each invariant: the exact number of its violations (`counts`), and the milliseconds of its check (`costs`).
    counts = models.JSONField(default=dict, db_default=_empty_object())
    costs = models.JSONField(default=dict, db_default=_empty_object())
    is_clean = models.BooleanField(default=True, db_default=True)
    # Conversations whose check timed out.
    unchecked = models.JSONField(default=list, db_default=_empty_list())

    class Meta:
        db_table = "integrity_reports"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "-started_at"], name="integrity_reports_ws_idx"),
            models.Index(fields=["conversation", "-started_at"], name="integrity_reports_conv_idx"),
            models.Index(fields=["-started_at"], name="integrity_reports_started_idx"),
        ]

    def __str__(self) -> str:
        return self.report_id


class Finding(models.Model):
    """One violation of an invariant. A report stores only the first of them."""

    finding_id = models.BigAutoField(primary_key=True)
    report = models.ForeignKey(IntegrityReport, models.CASCADE, related_name="findings")
    code = models.TextField()
    severity = _one_of(Severity)
    # Not a foreign key, because the conversation may be missing. NULL for rows without a conversation, such as grants.
    conversation_id = models.BigIntegerField(null=True)
    target = models.TextField()
    detail = models.TextField()

    class Meta:
        db_table = "integrity_findings"
        indexes: ClassVar = [
            models.Index(fields=["report", "code", "finding_id"], name="integrity_findings_report_idx"),
            models.Index(fields=["conversation_id"], name="integrity_findings_conv_idx"),
        ]

    def __str__(self) -> str:
        return f"{self.code}: {self.target}"


class RepairPlan(models.Model):
    """Repair steps for the findings of a report.

    A step is applied only after a person has approved it.
    """

    plan_id = models.TextField(primary_key=True)
    report = models.ForeignKey(IntegrityReport, models.CASCADE, related_name="plans")
    created_at = models.DateTimeField(db_default=Now())
    state = _one_of(PlanState, PlanState.PROPOSED)
    applied_at = models.DateTimeField(null=True)
    undone_at = models.DateTimeField(null=True)
    # The file with the ledger that is the source of restored texts and rows; empty if there is none.
    ledger_file_id = models.TextField(default="", db_default="")
    # The findings that no step repairs, each with the reason.
    unplanned = models.JSONField(default=list, db_default=_empty_list())
    # For an applied plan, the numbers of findings before and after. For a refused plan, the cause.
    outcome = models.JSONField(default=dict, db_default=_empty_object())

    class Meta:
        db_table = "repair_plans"
        indexes: ClassVar = [models.Index(fields=["report", "-created_at"], name="repair_plans_report_idx")]

    def __str__(self) -> str:
        return self.plan_id


class RepairStep(models.Model):
    """One step of a repair plan, with the values before and after."""

    step_id = models.BigAutoField(primary_key=True)
    plan = models.ForeignKey(RepairPlan, models.CASCADE, related_name="steps")
    ordinal = models.IntegerField()
    operation = models.TextField()
    # NULL for rows without a conversation, such as grants.
    conversation_id = models.BigIntegerField(null=True)
    target = models.TextField()
    before = models.JSONField(default=dict, db_default=_empty_object())
    after = models.JSONField(default=dict, db_default=_empty_object())
    risk = _one_of(Risk)
    reversible = models.BooleanField()
    why = models.TextField()
    # The codes of the invariants whose findings the step repairs.
    codes = models.JSONField(default=list, db_default=_empty_list())
    state = _one_of(StepState, StepState.PROPOSED)
    approved_by = models.TextField(default="", db_default="")
    approved_at = models.DateTimeField(null=True)
    applied_at = models.DateTimeField(null=True)
    # The values that undoing needs; NULL until the step is applied.
    undo = models.JSONField(null=True)

    class Meta:
        db_table = "repair_steps"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["plan", "ordinal"], name="repair_steps_stand_in_order"),
            models.CheckConstraint(
                condition=Q(state__in=["proposed", "refused"]) | ~Q(approved_by=""),
                name="repair_steps_are_applied_only_when_approved",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.plan_id}, step {self.ordinal}: {self.operation} {self.target}"

    @property
    def of_conversation(self) -> int:
        """The id of the step's conversation; only for steps that have one."""
        assert self.conversation_id is not None, "the planner gives it to every step about a conversation"
        return self.conversation_id

    @property
    def number(self) -> int:
        """The number in a target such as `job_12`."""
        return int(self.target.rpartition("_")[2])


class IntegrityScan(models.Model):
    """A check in the background.

    The row is also the job that workers claim and lease, like the jobs of compaction. A scan continues after
    `position`, the id of the last conversation that was checked.
    """

    scan_id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, related_name="integrity_scans")
    conversation = models.ForeignKey(Conversation, models.CASCADE, null=True, related_name="integrity_scans")
    mode = _one_of(ScanMode)
    with_plan = models.BooleanField(default=False, db_default=False)
    state = _one_of(JobState, JobState.QUEUED)
    requested_at = models.DateTimeField(db_default=Now())
    run_after = models.DateTimeField(db_default=Now())
    leased_until = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    fence = models.IntegerField(default=0, db_default=0)
    attempts = models.IntegerField(default=0, db_default=0)
    last_error = models.TextField(default="", db_default="")
    position = models.BigIntegerField(default=0, db_default=0)
    report = models.ForeignKey(IntegrityReport, models.SET_NULL, null=True, related_name="scans")
    plan = models.ForeignKey(RepairPlan, models.SET_NULL, null=True, related_name="scans")

    class Meta:
        db_table = "integrity_scans"
        indexes: ClassVar = [
            models.Index(
                fields=["run_after"], condition=Q(state__in=["queued", "leased"]), name="integrity_scans_open_idx"
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "conversation", "mode", "with_plan"],
                condition=Q(state="queued"),
                nulls_distinct=False,
                name="integrity_scans_wait_once",
            ),
        ]

    def __str__(self) -> str:
        return f"scan {self.scan_id} ({self.state})"


class ConversationCheck(models.Model):
    """The last check of a conversation.

    An incremental scan skips a conversation that was clean and has not changed since.
    """

    conversation = models.OneToOneField(Conversation, models.CASCADE, primary_key=True, related_name="integrity_check")
    checked_at = models.DateTimeField()
    is_clean = models.BooleanField()
    # The version of the conversation's row (`xmin` and `ctid`). Every write to a conversation updates its row.
    row_version = models.TextField()

    class Meta:
        db_table = "conversation_checks"

    def __str__(self) -> str:
        return f"{self.conversation_id}: {'clean' if self.is_clean else 'not clean'}"


class ColdProgress(models.Model):
    """The last seq up to which a conversation was moved to the cold tier."""

    conversation = models.OneToOneField(Conversation, models.CASCADE, primary_key=True, related_name="cold_progress")
    through_seq = models.BigIntegerField()
    moved_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "cold_progress"
        verbose_name_plural = "cold progress"

    def __str__(self) -> str:
        return f"{self.conversation_id}: through {self.through_seq}"


class Erasure(models.Model):
    """An erasure: a preview that may have been confirmed and carried out.

    The row holds no text of the conversation.
    """

    erasure_id = models.TextField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="erasures")
    requested_by = models.TextField()
    requested_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    message_ids = ArrayField(models.BigIntegerField())
    file_ids = ArrayField(models.TextField())
    # Whether the erasure covers the whole conversation, with its title and metadata.
    is_whole = models.BooleanField(default=False, db_default=False)
    # A hash of everything that the preview would remove.
    fingerprint = models.TextField()
    confirmation = models.TextField()
    act = models.ForeignKey(AuditEntry, models.RESTRICT, null=True, related_name="+")
    # Storage paths of erased files whose bytes still have to be removed.
    bytes_left = ArrayField(models.TextField(), default=list, db_default=[])

    class Meta:
        db_table = "erasures"
        indexes: ClassVar = [
            models.Index(fields=["conversation", "-requested_at"], name="erasures_conv_idx"),
            models.Index(fields=["erasure_id"], condition=~models.Q(bytes_left=[]), name="erasures_unfinished_idx"),
        ]

    def __str__(self) -> str:
        return self.erasure_id

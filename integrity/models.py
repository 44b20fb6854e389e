"""What integrity keeps: what was found, what was proposed against it, and what became of that."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Now

from conversations.models import Conversation, Workspace
from integrity.retention.models import ColdProgress, Erasure
from integrity.types import PlanState, Risk, ScanMode, ScanState, Severity, StepState

__all__ = [
    "ColdProgress",
    "ConversationCheck",
    "Erasure",
    "Finding",
    "IntegrityReport",
    "IntegrityScan",
    "RepairPlan",
    "RepairStep",
]


def _nothing() -> Value:
    return Value("{}", models.JSONField())


def _nobody() -> Value:
    return Value("[]", models.JSONField())


class IntegrityReport(models.Model):
    """What one check looked at, and how often each invariant was broken; the places are its findings."""

    report_id = models.TextField(primary_key=True)
    # Of which workspace or conversation; of everything there is where both are NULL.
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, related_name="integrity_reports")
    conversation = models.ForeignKey(Conversation, models.CASCADE, null=True, related_name="integrity_reports")
    mode = models.TextField(choices=[(mode.value, mode.value) for mode in ScanMode])
    started_at = models.DateTimeField()
    # NULL while a scan is still at it.
    finished_at = models.DateTimeField(null=True)
    conversations_checked = models.BigIntegerField(default=0, db_default=0)
    messages_checked = models.BigIntegerField(default=0, db_default=0)
    # By invariant: how often it is broken, exactly, and how many milliseconds it took to know.
    counts = models.JSONField(default=dict, db_default=_nothing())
    costs = models.JSONField(default=dict, db_default=_nothing())
    is_clean = models.BooleanField(default=True, db_default=True)
    # Conversations that took longer to look through than a scan may.
    unchecked = models.JSONField(default=list, db_default=_nobody())

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
    """One place where an invariant did not hold. So many are listed for each invariant; the report counts them all."""

    finding_id = models.BigAutoField(primary_key=True)
    report = models.ForeignKey(IntegrityReport, models.CASCADE, related_name="findings")
    code = models.TextField()
    severity = models.TextField(choices=[(severity.value, severity.value) for severity in Severity])
    # Not a foreign key: that the conversation is gone may be what was found. NULL for what belongs to none: a grant.
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
    """What could be done about the findings of a report. Nothing is done but what a person has approved."""

    plan_id = models.TextField(primary_key=True)
    report = models.ForeignKey(IntegrityReport, models.CASCADE, related_name="plans")
    created_at = models.DateTimeField(db_default=Now())
    state = models.TextField(
        choices=[(state.value, state.value) for state in PlanState],
        default=PlanState.PROPOSED,
        db_default=PlanState.PROPOSED.value,
    )
    applied_at = models.DateTimeField(null=True)
    undone_at = models.DateTimeField(null=True)
    # The file that holds the ledger from which texts and rows are put back; empty without one.
    ledger_file_id = models.TextField(default="", db_default="")
    # The findings that no operation mends, each with the reason: they are a person's.
    unplanned = models.JSONField(default=list, db_default=_nobody())
    # Why it was refused, and how often invariants were broken before and after.
    outcome = models.JSONField(default=dict, db_default=_nothing())

    class Meta:
        db_table = "repair_plans"
        indexes: ClassVar = [models.Index(fields=["report", "-created_at"], name="repair_plans_report_idx")]

    def __str__(self) -> str:
        return self.plan_id


class RepairStep(models.Model):
    """One thing to do: what it is done to, what stands there now and what will, and how to take it back."""

    step_id = models.BigAutoField(primary_key=True)
    plan = models.ForeignKey(RepairPlan, models.CASCADE, related_name="steps")
    ordinal = models.IntegerField()
    operation = models.TextField()
    # NULL for what belongs to no conversation, such as a grant.
    conversation_id = models.BigIntegerField(null=True)
    target = models.TextField()
    before = models.JSONField(default=dict, db_default=_nothing())
    after = models.JSONField(default=dict, db_default=_nothing())
    risk = models.TextField(choices=[(risk.value, risk.value) for risk in Risk])
    reversible = models.BooleanField()
    why = models.TextField()
    # The invariants that it is to mend.
    codes = models.JSONField(default=list, db_default=_nobody())
    state = models.TextField(
        choices=[(state.value, state.value) for state in StepState],
        default=StepState.PROPOSED,
        db_default=StepState.PROPOSED.value,
    )
    approved_by = models.TextField(default="", db_default="")
    approved_at = models.DateTimeField(null=True)
    applied_at = models.DateTimeField(null=True)
    # What undoing it needs to know; NULL until it is applied.
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


class IntegrityScan(models.Model):
    """A check that somebody must carry out. The row is the job: claimed, leased and fenced as those of compaction.

    It goes on where it was left: `position` is the last conversation that was looked through.
    """

    scan_id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, related_name="integrity_scans")
    conversation = models.ForeignKey(Conversation, models.CASCADE, null=True, related_name="integrity_scans")
    mode = models.TextField(choices=[(mode.value, mode.value) for mode in ScanMode])
    with_plan = models.BooleanField(default=False, db_default=False)
    state = models.TextField(
        choices=[(state.value, state.value) for state in ScanState],
        default=ScanState.QUEUED,
        db_default=ScanState.QUEUED.value,
    )
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
    """When a conversation was last looked through, and what its row was then: an incremental scan passes it over."""

    conversation = models.OneToOneField(Conversation, models.CASCADE, primary_key=True, related_name="integrity_check")
    checked_at = models.DateTimeField()
    is_clean = models.BooleanField()
    # The version of the conversation's row (`xmin`): whatever is written to a conversation moves a counter of its row.
    row_version = models.TextField()

    class Meta:
        db_table = "conversation_checks"

    def __str__(self) -> str:
        return f"{self.conversation_id}: {'clean' if self.is_clean else 'not clean'}"

"""Checks, reports, repair plans, scans, cold progress and erasures."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models.functions import Now

import compaction.types
import integrity.types
from conversations.run_sql import SealRows


class Migration(migrations.Migration):
    initial = True

    dependencies = [("conversations", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="ColdProgress",
            fields=[
                (
                    "conversation",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="cold_progress",
                        serialize=False,
                        to="conversations.conversation",
                    ),
                ),
                ("through_seq", models.BigIntegerField()),
                ("moved_at", models.DateTimeField(db_default=Now())),
            ],
            options={"verbose_name_plural": "cold progress", "db_table": "cold_progress"},
        ),
        migrations.CreateModel(
            name="ConversationCheck",
            fields=[
                (
                    "conversation",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="integrity_check",
                        serialize=False,
                        to="conversations.conversation",
                    ),
                ),
                ("checked_at", models.DateTimeField()),
                ("is_clean", models.BooleanField()),
                ("row_version", models.TextField()),
            ],
            options={"db_table": "conversation_checks"},
        ),
        migrations.CreateModel(
            name="IntegrityReport",
            fields=[
                ("report_id", models.TextField(primary_key=True, serialize=False)),
                ("mode", models.TextField(choices=[("full", "full"), ("incremental", "incremental")])),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                ("conversations_checked", models.BigIntegerField(db_default=0, default=0)),
                ("messages_checked", models.BigIntegerField(db_default=0, default=0)),
                ("counts", models.JSONField(db_default=models.Value("{}", models.JSONField()), default=dict)),
                ("costs", models.JSONField(db_default=models.Value("{}", models.JSONField()), default=dict)),
                ("is_clean", models.BooleanField(db_default=True, default=True)),
                ("unchecked", models.JSONField(db_default=models.Value("[]", models.JSONField()), default=list)),
                (
                    "conversation",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="integrity_reports",
                        to="conversations.conversation",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="integrity_reports",
                        to="conversations.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "integrity_reports",
                "indexes": [
                    models.Index(fields=["workspace", "-started_at"], name="integrity_reports_ws_idx"),
                    models.Index(fields=["conversation", "-started_at"], name="integrity_reports_conv_idx"),
                    models.Index(fields=["-started_at"], name="integrity_reports_started_idx"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Finding",
            fields=[
                ("finding_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("code", models.TextField()),
                (
                    "severity",
                    models.TextField(choices=[("critical", "critical"), ("error", "error"), ("warning", "warning")]),
                ),
                ("conversation_id", models.BigIntegerField(null=True)),
                ("target", models.TextField()),
                ("detail", models.TextField()),
                (
                    "report",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="findings", to="integrity.integrityreport"
                    ),
                ),
            ],
            options={
                "db_table": "integrity_findings",
                "indexes": [
                    models.Index(fields=["report", "code", "finding_id"], name="integrity_findings_report_idx"),
                    models.Index(fields=["conversation_id"], name="integrity_findings_conv_idx"),
                ],
            },
        ),
        migrations.CreateModel(
            name="RepairPlan",
            fields=[
                ("plan_id", models.TextField(primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=Now())),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("proposed", "proposed"),
                            ("approved", "approved"),
                            ("applied", "applied"),
                            ("refused", "refused"),
                            ("undone", "undone"),
                        ],
                        db_default="proposed",
                        default=integrity.types.PlanState["PROPOSED"],
                    ),
                ),
                ("applied_at", models.DateTimeField(null=True)),
                ("undone_at", models.DateTimeField(null=True)),
                ("ledger_file_id", models.TextField(db_default="", default="")),
                ("unplanned", models.JSONField(db_default=models.Value("[]", models.JSONField()), default=list)),
                ("outcome", models.JSONField(db_default=models.Value("{}", models.JSONField()), default=dict)),
                (
                    "report",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="plans", to="integrity.integrityreport"),
                ),
            ],
            options={
                "db_table": "repair_plans",
                "indexes": [models.Index(fields=["report", "-created_at"], name="repair_plans_report_idx")],
            },
        ),
        migrations.CreateModel(
            name="IntegrityScan",
            fields=[
                ("scan_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("mode", models.TextField(choices=[("full", "full"), ("incremental", "incremental")])),
                ("with_plan", models.BooleanField(db_default=False, default=False)),
                (
                    "state",
                    models.TextField(
                        choices=[("queued", "queued"), ("leased", "leased"), ("done", "done"), ("failed", "failed")],
                        db_default="queued",
                        default=compaction.types.JobState["QUEUED"],
                    ),
                ),
                ("requested_at", models.DateTimeField(db_default=Now())),
                ("run_after", models.DateTimeField(db_default=Now())),
                ("leased_until", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("fence", models.IntegerField(db_default=0, default=0)),
                ("attempts", models.IntegerField(db_default=0, default=0)),
                ("last_error", models.TextField(db_default="", default="")),
                ("position", models.BigIntegerField(db_default=0, default=0)),
                (
                    "conversation",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="integrity_scans",
                        to="conversations.conversation",
                    ),
                ),
                (
                    "report",
                    models.ForeignKey(
                        null=True, on_delete=models.SET_NULL, related_name="scans", to="integrity.integrityreport"
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="integrity_scans",
                        to="conversations.workspace",
                    ),
                ),
                (
                    "plan",
                    models.ForeignKey(
                        null=True, on_delete=models.SET_NULL, related_name="scans", to="integrity.repairplan"
                    ),
                ),
            ],
            options={
                "db_table": "integrity_scans",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["queued", "leased"])),
                        fields=["run_after"],
                        name="integrity_scans_open_idx",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "queued")),
                        fields=("workspace", "conversation", "mode", "with_plan"),
                        name="integrity_scans_wait_once",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RepairStep",
            fields=[
                ("step_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("ordinal", models.IntegerField()),
                ("operation", models.TextField()),
                ("conversation_id", models.BigIntegerField(null=True)),
                ("target", models.TextField()),
                ("before", models.JSONField(db_default=models.Value("{}", models.JSONField()), default=dict)),
                ("after", models.JSONField(db_default=models.Value("{}", models.JSONField()), default=dict)),
                ("risk", models.TextField(choices=[("low", "low"), ("medium", "medium"), ("high", "high")])),
                ("reversible", models.BooleanField()),
                ("why", models.TextField()),
                ("codes", models.JSONField(db_default=models.Value("[]", models.JSONField()), default=list)),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("proposed", "proposed"),
                            ("approved", "approved"),
                            ("applied", "applied"),
                            ("undone", "undone"),
                            ("refused", "refused"),
                            ("stale", "stale"),
                        ],
                        db_default="proposed",
                        default=integrity.types.StepState["PROPOSED"],
                    ),
                ),
                ("approved_by", models.TextField(db_default="", default="")),
                ("approved_at", models.DateTimeField(null=True)),
                ("applied_at", models.DateTimeField(null=True)),
                ("undo", models.JSONField(null=True)),
                ("plan", models.ForeignKey(on_delete=models.CASCADE, related_name="steps", to="integrity.repairplan")),
            ],
            options={
                "db_table": "repair_steps",
                "constraints": [
                    models.UniqueConstraint(fields=("plan", "ordinal"), name="repair_steps_stand_in_order"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["proposed", "refused"]),
                            models.Q(("approved_by", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="repair_steps_are_applied_only_when_approved",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Erasure",
            fields=[
                ("erasure_id", models.TextField(primary_key=True, serialize=False)),
                ("requested_by", models.TextField()),
                ("requested_at", models.DateTimeField(db_default=Now())),
                ("expires_at", models.DateTimeField()),
                ("message_ids", ArrayField(base_field=models.BigIntegerField(), size=None)),
                ("file_ids", ArrayField(base_field=models.TextField(), size=None)),
                ("is_whole", models.BooleanField(db_default=False, default=False)),
                ("fingerprint", models.TextField()),
                ("confirmation", models.TextField()),
                ("bytes_left", ArrayField(base_field=models.TextField(), db_default=[], default=list, size=None)),
                (
                    "act",
                    models.ForeignKey(
                        null=True, on_delete=models.RESTRICT, related_name="+", to="conversations.auditentry"
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="erasures", to="conversations.conversation"
                    ),
                ),
            ],
            options={
                "db_table": "erasures",
                "indexes": [
                    models.Index(fields=["conversation", "-requested_at"], name="erasures_conv_idx"),
                    models.Index(
                        condition=models.Q(("bytes_left", []), _negated=True),
                        fields=["erasure_id"],
                        name="erasures_unfinished_idx",
                    ),
                ],
            },
        ),
        SealRows(
            "integrity_reports",
            "report_id workspace_id conversation_id mode started_at finished_at conversations_checked messages_checked"
            " counts costs is_clean unchecked",
        ),
        SealRows("integrity_findings", "finding_id report_id code severity conversation_id target detail"),
        SealRows(
            "repair_plans", "plan_id report_id created_at state applied_at undone_at ledger_file_id unplanned outcome"
        ),
        SealRows(
            "repair_steps",
            "step_id plan_id ordinal operation conversation_id target before after risk reversible why codes state"
            " approved_by approved_at applied_at undo",
        ),
        SealRows(
            "erasures",
            "erasure_id conversation_id requested_by requested_at expires_at message_ids file_ids is_whole fingerprint"
            " confirmation act_id bytes_left",
        ),
    ]

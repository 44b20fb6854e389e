"""Jobs, runs, plans, host boundaries and model endpoints."""

from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now

import compaction.types
from conversations.run_sql import SealRows

REASONS = [(each, each) for each in ["threshold", "manual", "maintenance", "redo", "redo_all"]]
OUTCOMES = [
    (each, each)
    for each in [
        "running",
        "compacted",
        "not_needed",
        "nothing_to_do",
        "exhausted",
        "disabled",
        "stopped",
        "abandoned",
        "failed",
        "skipped",
        "unavailable",
    ]
]


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("conversations", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="ModelEndpoint",
            fields=[
                ("name", models.TextField(primary_key=True, serialize=False)),
                ("consecutive_failures", models.IntegerField(db_default=0, default=0)),
                ("open_until", models.DateTimeField(null=True)),
                ("probing_until", models.DateTimeField(null=True)),
                ("last_failure", models.TextField(db_default="", default="")),
                ("last_failure_at", models.DateTimeField(null=True)),
                ("last_success_at", models.DateTimeField(null=True)),
                ("window_started_at", models.DateTimeField(db_default=Now())),
                ("window_calls", models.IntegerField(db_default=0, default=0)),
                ("window_tokens", models.BigIntegerField(db_default=0, default=0)),
                ("calls", models.BigIntegerField(db_default=0, default=0)),
                ("failures", models.BigIntegerField(db_default=0, default=0)),
                ("tokens_in", models.BigIntegerField(db_default=0, default=0)),
                ("tokens_out", models.BigIntegerField(db_default=0, default=0)),
            ],
            options={"db_table": "model_endpoints"},
        ),
        migrations.CreateModel(
            name="CompactionJob",
            fields=[
                ("job_id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "reason",
                    models.TextField(choices=REASONS),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[("queued", "queued"), ("leased", "leased"), ("done", "done"), ("failed", "failed")],
                        default=compaction.types.JobState["QUEUED"],
                    ),
                ),
                ("requested_at", models.DateTimeField(db_default=Now())),
                ("run_after", models.DateTimeField(db_default=Now())),
                ("leased_until", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("fence", models.IntegerField(default=0)),
                ("attempts", models.IntegerField(default=0)),
                ("last_error", models.TextField(default="")),
                ("request_id", models.TextField(db_default="", default="")),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="compaction_jobs", to="conversations.conversation"
                    ),
                ),
            ],
            options={
                "db_table": "compaction_jobs",
                "indexes": [
                    models.Index(
                        condition=Q(("state__in", ["queued", "leased"])),
                        fields=["run_after"],
                        name="compaction_jobs_open_idx",
                    ),
                    models.Index(
                        condition=Q(("state", "failed")), fields=["finished_at"], name="compaction_jobs_failed_idx"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(("state", "queued")),
                        fields=("conversation",),
                        name="compaction_jobs_wait_once_per_conversation",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CompactionRun",
            fields=[
                ("run_id", models.TextField(primary_key=True, serialize=False)),
                (
                    "reason",
                    models.TextField(choices=REASONS),
                ),
                (
                    "outcome",
                    models.TextField(choices=OUTCOMES),
                ),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                ("tokens_before", models.BigIntegerField()),
                ("tokens_after", models.BigIntegerField()),
                ("leaf_summaries", models.IntegerField(default=0)),
                ("condensed_summaries", models.IntegerField(default=0)),
                ("redone_summaries", models.IntegerField(db_default=0, default=0)),
                ("details", models.JSONField(db_default=models.Value("{}", models.JSONField()), default=dict)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="compaction_runs", to="conversations.conversation"
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        null=True, on_delete=models.SET_NULL, related_name="runs", to="compaction.compactionjob"
                    ),
                ),
            ],
            options={
                "db_table": "compaction_runs",
                "indexes": [
                    models.Index(fields=["conversation", "-started_at"], name="compaction_runs_conv_idx"),
                    models.Index(fields=["-started_at", "-run_id"], name="compaction_runs_started_idx"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(
                            ("tokens_after__gte", 0),
                            ("tokens_before__gte", 0),
                            Q(("tokens_after__lte", F("tokens_before")), ("redone_summaries__gt", 0), _connector="OR"),
                        ),
                        name="compaction_runs_add_up",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CompactionPlan",
            fields=[
                ("plan_id", models.TextField(primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=Now())),
                ("last_seq", models.BigIntegerField()),
                ("tokens_before", models.BigIntegerField()),
                ("tokens_expected", models.BigIntegerField()),
                ("context_hash", models.TextField()),
                ("summarizer", models.TextField()),
                ("policy", models.JSONField()),
                ("steps", models.JSONField()),
                ("figures", models.JSONField()),
                ("requested_at", models.DateTimeField(null=True)),
                ("refusal", models.TextField(db_default="", default="")),
                ("executed_at", models.DateTimeField(null=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="compaction_plans", to="conversations.conversation"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True, on_delete=models.SET_NULL, related_name="plans", to="compaction.compactionrun"
                    ),
                ),
            ],
            options={
                "db_table": "compaction_plans",
                "indexes": [
                    models.Index(fields=["conversation", "-created_at"], name="compaction_plans_conv_idx"),
                    models.Index(
                        condition=Q(("executed_at__isnull", True), ("refusal", ""), ("requested_at__isnull", False)),
                        fields=["requested_at"],
                        name="compaction_plans_waiting_idx",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(("tokens_expected__gte", 0), ("tokens_expected__lte", F("tokens_before"))),
                        name="compaction_plans_add_up",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CompactionBoundary",
            fields=[
                ("boundary_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("host_reference", models.TextField()),
                ("last_seq", models.BigIntegerField()),
                ("recorded_at", models.DateTimeField(db_default=Now())),
                ("metadata", models.JSONField(default=dict)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="boundaries", to="conversations.conversation"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "compaction boundaries",
                "db_table": "compaction_boundaries",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("conversation", "host_reference"), name="compaction_boundaries_have_one_name_each"
                    )
                ],
            },
        ),
        SealRows(
            "compaction_runs",
            "run_id conversation_id job_id reason outcome started_at finished_at tokens_before tokens_after"
            " leaf_summaries condensed_summaries redone_summaries details",
        ),
        SealRows(
            "compaction_plans",
            "plan_id conversation_id created_at last_seq tokens_before tokens_expected context_hash summarizer policy"
            " steps figures requested_at refusal executed_at run_id",
        ),
        SealRows("compaction_boundaries", "boundary_id conversation_id host_reference last_seq recorded_at metadata"),
    ]

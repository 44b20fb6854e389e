"""Session, arc and epoch summaries, their lineage and their jobs."""

import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import compaction.types
import conversations.models.columns
import conversations.types
from conversations.run_sql import RunSQLFile, SealRows


class Migration(migrations.Migration):
    dependencies = [
        ("compaction", "0002_endpoint_temperature"),
        ("conversations", "0002_projects"),
    ]

    operations = [
        migrations.CreateModel(
            name="SessionSummary",
            fields=[
                ("summary_id", models.TextField(primary_key=True, serialize=False)),
                ("depth", models.SmallIntegerField()),
                ("kind", models.TextField(choices=[("session", "session"), ("arc", "arc"), ("epoch", "epoch")])),
                ("content", models.TextField()),
                (
                    "content_tsv",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Func("content", function="lcm_tsv"),
                        output_field=django.contrib.postgres.search.SearchVectorField(),
                    ),
                ),
                ("token_count", models.IntegerField()),
                ("token_counter", models.TextField()),
                ("first_seq", models.BigIntegerField(null=True)),
                ("last_seq", models.BigIntegerField(null=True)),
                ("earliest_at", models.DateTimeField()),
                ("latest_at", models.DateTimeField()),
                (
                    "level",
                    models.TextField(
                        choices=[("normal", "normal"), ("aggressive", "aggressive"), ("deterministic", "deterministic")]
                    ),
                ),
                ("confidence", models.FloatField()),
                ("model", models.TextField()),
                ("prompt_version", models.TextField(db_default="", default="")),
                ("retention", models.FloatField(null=True)),
                ("quality", models.JSONField(default=dict)),
                ("is_degraded", models.BooleanField(db_default=False, default=False)),
                ("summary_hash", models.BinaryField()),
                ("created_at", models.DateTimeField(db_default=models.Func(function="clock_timestamp"))),
                (
                    "conversation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="session_summaries",
                        to="conversations.conversation",
                    ),
                ),
                (
                    "erased_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="+",
                        to="conversations.auditentry",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="session_summaries",
                        to="conversations.project",
                    ),
                ),
                (
                    "supersedes",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="superseded_by",
                        to="compaction.sessionsummary",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.RESTRICT, related_name="+", to="conversations.workspace"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "session summaries",
                "db_table": "session_summaries",
            },
        ),
        migrations.CreateModel(
            name="SessionSummaryChild",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "parent_id", "ordinal", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("ordinal", models.IntegerField()),
                (
                    "child",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="parent_links",
                        to="compaction.sessionsummary",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="child_links",
                        to="compaction.sessionsummary",
                    ),
                ),
            ],
            options={
                "db_table": "session_summary_children",
            },
        ),
        migrations.CreateModel(
            name="SessionSummaryMemory",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "summary_id", "ordinal", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("ordinal", models.IntegerField()),
                (
                    "item_type",
                    conversations.models.columns.EnumField(conversations.types.ContextItemType, "context_item_type"),
                ),
                (
                    "memory_summary",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="+",
                        to="conversations.summary",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="+",
                        to="conversations.message",
                    ),
                ),
                (
                    "summary",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="memory_links",
                        to="compaction.sessionsummary",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "session summary memories",
                "db_table": "session_summary_memories",
            },
        ),
        migrations.CreateModel(
            name="HistoryJob",
            fields=[
                ("job_id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "reason",
                    models.TextField(
                        choices=[
                            ("quiet", "quiet"),
                            ("manual", "manual"),
                            ("changed", "changed"),
                            ("redo", "redo"),
                            ("project", "project"),
                        ]
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[("queued", "queued"), ("leased", "leased"), ("done", "done"), ("failed", "failed")],
                        default=compaction.types.JobState["QUEUED"],
                    ),
                ),
                ("requested_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("run_after", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("leased_until", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("fence", models.IntegerField(default=0)),
                ("attempts", models.IntegerField(default=0)),
                ("last_error", models.TextField(default="")),
                (
                    "conversation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="history_jobs",
                        to="conversations.conversation",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="history_jobs",
                        to="conversations.project",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="conversations.workspace"
                    ),
                ),
            ],
            options={
                "db_table": "history_jobs",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["queued", "leased"])),
                        fields=["run_after"],
                        name="history_jobs_open_idx",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("conversation__isnull", True), ("project__isnull", True), _connector="XOR"),
                        name="history_jobs_are_about_one_thing",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("conversation__isnull", False), ("state", "queued")),
                        fields=("conversation",),
                        name="history_jobs_wait_once_per_conversation",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("project__isnull", False), ("state", "queued")),
                        fields=("project",),
                        name="history_jobs_wait_once_per_project",
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="sessionsummary",
            index=models.Index(fields=["project", "depth", "latest_at"], name="session_summaries_project_idx"),
        ),
        migrations.AddIndex(
            model_name="sessionsummary",
            index=django.contrib.postgres.indexes.GinIndex(
                fields=["content_tsv"], name="session_summaries_tsv_gin_idx"
            ),
        ),
        migrations.AddIndex(
            model_name="sessionsummary",
            index=models.Index(
                condition=models.Q(("is_degraded", True)), fields=["summary_id"], name="session_summaries_degraded_idx"
            ),
        ),
        migrations.AddIndex(
            model_name="sessionsummary",
            index=models.Index(
                condition=models.Q(("erased_by__isnull", False)),
                fields=["summary_id"],
                name="session_summaries_erased_idx",
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionsummary",
            constraint=models.UniqueConstraint(
                condition=models.Q(("conversation__isnull", False), ("supersedes__isnull", True)),
                fields=("conversation",),
                name="session_summaries_begin_once_per_conversation",
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionsummary",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("depth", 0), ("kind", "session")),
                    models.Q(("depth", 1), ("kind", "arc")),
                    models.Q(("depth", 2), ("kind", "epoch")),
                    _connector="OR",
                ),
                name="session_summaries_have_the_depth_of_their_kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionsummary",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("conversation__isnull", False),
                        ("depth", 0),
                        ("first_seq__gte", 1),
                        ("last_seq__gte", models.F("first_seq")),
                    ),
                    models.Q(
                        ("conversation__isnull", True),
                        ("depth__gt", 0),
                        ("first_seq__isnull", True),
                        ("last_seq__isnull", True),
                        ("project__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="session_summaries_cover_a_conversation_or_a_project",
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionsummary",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("confidence", 0.7), ("level", "normal")),
                    models.Q(("confidence", 0.5), ("level", "aggressive")),
                    models.Q(("confidence", 0.3), ("level", "deterministic")),
                    _connector="OR",
                ),
                name="session_summaries_have_the_confidence_of_their_level",
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionsummary",
            constraint=models.CheckConstraint(
                condition=models.Q(("earliest_at__lte", models.F("latest_at")), ("token_count__gte", 0)),
                name="session_summaries_add_up",
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionsummary",
            constraint=models.CheckConstraint(
                condition=models.Q(("supersedes", models.F("summary_id")), _negated=True),
                name="session_summaries_supersede_others",
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionsummarychild",
            constraint=models.UniqueConstraint(
                fields=("parent", "child"), name="session_summary_children_are_listed_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionsummarychild",
            constraint=models.CheckConstraint(
                condition=models.Q(models.Q(("parent", models.F("child")), _negated=True), ("ordinal__gte", 0)),
                name="session_summary_children_are_others",
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionsummarymemory",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("item_type", "message"), ("memory_summary__isnull", True), ("message__isnull", False)),
                    models.Q(("item_type", "summary"), ("memory_summary__isnull", False), ("message__isnull", True)),
                    _connector="OR",
                ),
                name="session_summary_memories_point_at_one_thing",
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionsummarymemory",
            constraint=models.CheckConstraint(
                condition=models.Q(("ordinal__gte", 0)), name="session_summary_memories_count_from_zero"
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionsummarymemory",
            constraint=models.UniqueConstraint(
                condition=models.Q(("message__isnull", False)),
                fields=("summary", "message"),
                name="session_summary_memories_name_a_message_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionsummarymemory",
            constraint=models.UniqueConstraint(
                condition=models.Q(("memory_summary__isnull", False)),
                fields=("summary", "memory_summary"),
                name="session_summary_memories_name_a_summary_once",
            ),
        ),
        RunSQLFile("compaction/sql/session_summaries.sql"),
        SealRows(
            "session_summaries",
            "summary_id workspace_id project_id conversation_id depth kind token_count token_counter first_seq last_seq"
            " earliest_at latest_at level confidence model prompt_version retention quality is_degraded summary_hash"
            " supersedes_id erased_by_id created_at",
        ),
    ]

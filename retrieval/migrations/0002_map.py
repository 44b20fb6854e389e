"""Map runs, their items, and the record of what happened to them."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import conversations.models.columns
from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0001_initial"),
        ("retrieval", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="MapRun",
            fields=[
                ("run_id", models.TextField(primary_key=True, serialize=False)),
                ("kind", models.TextField(choices=[("llm", "llm"), ("agentic", "agentic")])),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("queued", "queued"),
                            ("running", "running"),
                            ("paused", "paused"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        default="queued",
                    ),
                ),
                (
                    "pause_reason",
                    models.TextField(
                        choices=[
                            ("", ""),
                            ("person", "person"),
                            ("breaker", "breaker"),
                            ("spend", "spend"),
                            ("budget", "budget"),
                        ],
                        db_default="",
                        default="",
                    ),
                ),
                ("prompt", models.TextField()),
                ("output_schema", conversations.models.columns.ExactJSONField()),
                ("model", models.TextField(db_default="", default="")),
                ("concurrency", models.IntegerField()),
                ("max_attempts", models.IntegerField()),
                ("temperature", models.FloatField(null=True)),
                ("timeout_s", models.IntegerField()),
                ("budget_tokens", models.BigIntegerField(null=True)),
                ("spent_in", models.BigIntegerField(db_default=0, default=0)),
                ("spent_out", models.BigIntegerField(db_default=0, default=0)),
                ("retain", models.TextField(db_default="", default="")),
                ("delegated_scope", models.TextField(db_default="", default="")),
                ("kept_work", models.TextField(db_default="", default="")),
                ("grant_id", models.TextField(null=True)),
                ("read_only", models.BooleanField(db_default=True, default=True)),
                ("idempotency_key", models.TextField(null=True)),
                ("total", models.IntegerField()),
                ("prompt_hash", models.BinaryField()),
                ("schema_hash", models.BinaryField()),
                ("input_hash", models.BinaryField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("last_claim_at", models.DateTimeField(null=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="map_runs",
                        to="conversations.conversation",
                    ),
                ),
                (
                    "failures_file",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="+",
                        to="conversations.largefile",
                    ),
                ),
                (
                    "input_file",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.RESTRICT, related_name="+", to="conversations.largefile"
                    ),
                ),
                (
                    "output_file",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="+",
                        to="conversations.largefile",
                    ),
                ),
                (
                    "parent_run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="child_runs",
                        to="retrieval.maprun",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="map_runs",
                        to="conversations.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "map_runs",
            },
        ),
        migrations.CreateModel(
            name="MapItem",
            fields=[
                ("item_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("position", models.IntegerField()),
                ("input", models.TextField()),
                ("input_hash", models.BinaryField()),
                (
                    "state",
                    models.TextField(
                        choices=[("queued", "queued"), ("leased", "leased"), ("done", "done"), ("failed", "failed")],
                        db_default="queued",
                        default="queued",
                    ),
                ),
                ("run_after", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("leased_until", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("fence", models.IntegerField(db_default=0, default=0)),
                ("attempts", models.IntegerField(db_default=0, default=0)),
                ("refused_answers", models.IntegerField(db_default=0, default=0)),
                ("faults", models.IntegerField(db_default=0, default=0)),
                ("last_error", models.TextField(db_default="", default="")),
                (
                    "error_kind",
                    models.TextField(
                        choices=[
                            ("timeout", "timeout"),
                            ("validation", "validation"),
                            ("model", "model"),
                            ("budget", "budget"),
                            ("lease_lost", "lease_lost"),
                            ("agent", "agent"),
                        ],
                        null=True,
                    ),
                ),
                ("validation_errors", models.TextField(db_default="", default="")),
                ("output", models.TextField(null=True)),
                ("output_hash", models.BinaryField(null=True)),
                ("worker", models.TextField(db_default="", default="")),
                ("tokens_in", models.BigIntegerField(db_default=0, default=0)),
                ("tokens_out", models.BigIntegerField(db_default=0, default=0)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.RESTRICT, related_name="items", to="retrieval.maprun"
                    ),
                ),
            ],
            options={
                "db_table": "map_items",
            },
        ),
        migrations.CreateModel(
            name="MapEvent",
            fields=[
                ("event_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("seq", models.IntegerField(db_default=0)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("actor", models.TextField()),
                (
                    "event",
                    models.TextField(
                        choices=[
                            ("submitted", "submitted"),
                            ("claimed", "claimed"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("released", "released"),
                            ("paused", "paused"),
                            ("resumed", "resumed"),
                            ("cancelled", "cancelled"),
                            ("retried", "retried"),
                            ("delegated", "delegated"),
                            ("finished", "finished"),
                        ]
                    ),
                ),
                ("position", models.IntegerField(null=True)),
                ("input_hash", models.BinaryField(db_default=b"")),
                ("output_hash", models.BinaryField(db_default=b"")),
                ("details", conversations.models.columns.ExactJSONField()),
                ("previous_hash", models.BinaryField(db_default=b"")),
                ("hash", models.BinaryField(db_default=b"")),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.RESTRICT, related_name="+", to="conversations.workspace"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.RESTRICT, related_name="events", to="retrieval.maprun"
                    ),
                ),
            ],
            options={
                "db_table": "map_events",
            },
        ),
        migrations.AddIndex(
            model_name="maprun",
            index=models.Index(fields=["workspace", "-created_at"], name="map_runs_workspace_idx"),
        ),
        migrations.AddIndex(
            model_name="maprun",
            index=models.Index(fields=["conversation", "-created_at"], name="map_runs_conv_idx"),
        ),
        migrations.AddIndex(
            model_name="maprun",
            index=models.Index(
                models.OrderBy(models.F("last_claim_at"), nulls_first=True),
                condition=models.Q(("state__in", ["queued", "running"])),
                name="map_runs_open_idx",
            ),
        ),
        migrations.AddConstraint(
            model_name="maprun",
            constraint=models.UniqueConstraint(
                fields=("workspace", "idempotency_key"), name="map_runs_have_one_idempotency_key_each"
            ),
        ),
        migrations.AddConstraint(
            model_name="maprun",
            constraint=models.CheckConstraint(
                condition=models.Q(("prompt__contains", "{{item}}")), name="map_runs_prompts_hold_the_item"
            ),
        ),
        migrations.AddConstraint(
            model_name="maprun",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "agentic"), _negated=True),
                    models.Q(("retain", ""), _negated=True),
                    _connector="OR",
                ),
                name="map_runs_delegate_only_with_retention",
            ),
        ),
        migrations.AddConstraint(
            model_name="maprun",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(models.Q(("state", "paused"), _negated=True), ("pause_reason", "")),
                    models.Q(("state", "paused"), models.Q(("pause_reason", ""), _negated=True)),
                    _connector="OR",
                ),
                name="map_runs_pause_for_a_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="maprun",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("concurrency__gte", 1),
                    ("max_attempts__gte", 1),
                    ("timeout_s__gte", 1),
                    ("total__gte", 1),
                    ("spent_in__gte", 0),
                    ("spent_out__gte", 0),
                ),
                name="map_runs_have_possible_figures",
            ),
        ),
        migrations.AddIndex(
            model_name="mapitem",
            index=models.Index(fields=["run", "state", "position"], name="map_items_run_idx"),
        ),
        migrations.AddIndex(
            model_name="mapitem",
            index=models.Index(
                condition=models.Q(("state__in", ["queued", "leased"])),
                fields=["run", "run_after"],
                name="map_items_open_idx",
            ),
        ),
        migrations.AddConstraint(
            model_name="mapitem",
            constraint=models.UniqueConstraint(fields=("run", "position"), name="map_items_have_one_place_each"),
        ),
        migrations.AddConstraint(
            model_name="mapitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("output__isnull", False), ("output_hash__isnull", False), ("state", "done")),
                    models.Q(
                        models.Q(("state", "done"), _negated=True),
                        ("output__isnull", True),
                        ("output_hash__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="map_items_have_an_output_when_done",
            ),
        ),
        migrations.AddConstraint(
            model_name="mapitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "failed"), _negated=True), ("error_kind__isnull", False), _connector="OR"
                ),
                name="map_items_fail_for_a_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="mapitem",
            constraint=models.CheckConstraint(
                condition=models.Q(("position__gte", 1)), name="map_items_count_from_one"
            ),
        ),
        migrations.AddConstraint(
            model_name="mapevent",
            constraint=models.UniqueConstraint(fields=("run", "seq"), name="map_events_have_one_place_each"),
        ),
        migrations.AddConstraint(
            model_name="mapevent",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("actor", ""), _negated=True), models.Q(("actor__contains", "\n"), _negated=True)
                ),
                name="map_events_name_who_on_one_line",
            ),
        ),
        RunSQLFile("retrieval/sql/map/event_chain.sql"),
    ]

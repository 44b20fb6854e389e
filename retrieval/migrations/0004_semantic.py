"""Embedders, their progress by conversation, and triggers that remove vectors."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0003_branches"),
        ("retrieval", "0003_map_seals"),
    ]

    operations = [
        migrations.CreateModel(
            name="Embedder",
            fields=[
                ("embedder_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("url", models.TextField()),
                ("model", models.TextField()),
                ("question_model", models.TextField()),
                ("dimension", models.IntegerField()),
                (
                    "state",
                    models.TextField(
                        choices=[("building", "building"), ("current", "current"), ("old", "old")], default="building"
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("switched_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "embedders",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ["building", "current"])),
                        fields=("state",),
                        name="embedders_build_and_serve_once",
                    ),
                    models.UniqueConstraint(
                        fields=("url", "model", "question_model"), name="embedders_are_listed_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("dimension__gte", 1)), name="embedders_have_a_dimension"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="EmbeddedConversation",
            fields=[
                ("job_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("upto_seq", models.BigIntegerField(db_default=0, default=0)),
                ("passages", models.BigIntegerField(db_default=0, default=0)),
                ("passages_refused", models.BigIntegerField(db_default=0, default=0)),
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
                ("finished_at", models.DateTimeField(null=True)),
                ("fence", models.IntegerField(db_default=0, default=0)),
                ("attempts", models.IntegerField(db_default=0, default=0)),
                ("last_error", models.TextField(db_default="", default="")),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="conversations.conversation"
                    ),
                ),
                (
                    "embedder",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="conversations",
                        to="retrieval.embedder",
                    ),
                ),
            ],
            options={
                "db_table": "embedded_conversations",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["queued", "leased"])),
                        fields=["run_after"],
                        name="embedded_conv_open_idx",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("conversation", "embedder"), name="embedded_conversations_are_listed_once"
                    )
                ],
            },
        ),
        RunSQLFile("retrieval/sql/semantic/triggers.sql"),
    ]

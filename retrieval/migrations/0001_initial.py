"""Receipts of assemblies, grants, and the search index of files."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from conversations.run_sql import RunSQLFile, SealRows


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("conversations", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="AssemblyReceipt",
            fields=[
                ("receipt_id", models.TextField(primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("figures", models.JSONField()),
                ("lines", models.JSONField()),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="assembly_receipts",
                        to="conversations.conversation",
                    ),
                ),
            ],
            options={
                "db_table": "assembly_receipts",
                "indexes": [models.Index(fields=["conversation", "-created_at"], name="assembly_receipts_conv_idx")],
            },
        ),
        migrations.CreateModel(
            name="Grant",
            fields=[
                ("grant_id", models.TextField(primary_key=True, serialize=False)),
                ("question", models.TextField()),
                ("item_ids", django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ("depth", models.IntegerField()),
                ("token_cap", models.IntegerField()),
                ("tokens_used", models.IntegerField(db_default=0, default=0)),
                ("reads", models.IntegerField(db_default=0, default=0)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(null=True)),
                ("refusals", models.JSONField(db_default=models.Value("{}", models.JSONField()), default=dict)),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="grants", to="conversations.workspace"
                    ),
                ),
            ],
            options={
                "db_table": "grants",
                "indexes": [models.Index(fields=["workspace", "-created_at"], name="grants_workspace_idx")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("tokens_used__gte", 0), ("tokens_used__lte", models.F("token_cap"))),
                        name="grants_are_never_exceeded",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("depth__gte", 1), ("depth__lte", 3)),
                        name="grants_go_three_levels_down_at_most",
                    ),
                ],
            },
        ),
        RunSQLFile("retrieval/sql/files.sql"),
        SealRows("assembly_receipts", "receipt_id conversation_id figures lines"),
        SealRows(
            "grants",
            "grant_id workspace_id question item_ids depth token_cap tokens_used reads created_at expires_at revoked_at"
            " refusals",
        ),
    ]

"""How far conversations have gone cold, and erasures that were asked for."""

from __future__ import annotations

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0005_uploads"),
        ("integrity", "0001_reports"),
    ]

    operations = [
        migrations.CreateModel(
            name="ColdProgress",
            fields=[
                (
                    "conversation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="cold_progress",
                        serialize=False,
                        to="conversations.conversation",
                    ),
                ),
                ("through_seq", models.BigIntegerField()),
                ("moved_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={"db_table": "cold_progress", "verbose_name_plural": "cold progress"},
        ),
        migrations.CreateModel(
            name="Erasure",
            fields=[
                ("erasure_id", models.TextField(primary_key=True, serialize=False)),
                ("requested_by", models.TextField()),
                ("requested_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
                (
                    "message_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                ("file_ids", django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ("is_whole", models.BooleanField(db_default=False, default=False)),
                ("fingerprint", models.TextField()),
                ("confirmation", models.TextField()),
                (
                    "bytes_left",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), db_default=[], default=list, size=None
                    ),
                ),
                (
                    "act",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="+",
                        to="conversations.auditentry",
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="erasures",
                        to="conversations.conversation",
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
    ]

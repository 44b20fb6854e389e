"""Passages without a vector, each with the reason of the embedder."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0003_branches"),
        ("retrieval", "0006_quarantine_pauses"),
    ]

    operations = [
        migrations.CreateModel(
            name="RefusedPassage",
            fields=[
                ("refusal_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("passage", models.IntegerField()),
                ("reason", models.TextField()),
                ("refused_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "embedder",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="refused_passages",
                        to="retrieval.embedder",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="conversations.message"
                    ),
                ),
            ],
            options={
                "db_table": "refused_passages",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("embedder", "message", "passage"), name="refused_passages_are_listed_once"
                    )
                ],
            },
        ),
    ]

"""Branches: where the head of a conversation moved."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now

from conversations.models.columns import SeqRangesField
from conversations.run_sql import RunSQLFile, SealRows


class Migration(migrations.Migration):
    dependencies = [("conversations", "0002_projects")]

    operations = [
        migrations.CreateModel(
            name="HeadMove",
            fields=[
                ("head_move_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("number", models.IntegerField()),
                ("at_seq", models.BigIntegerField()),
                ("head_seq", models.BigIntegerField()),
                ("recorded_at", models.DateTimeField(db_default=Now())),
                ("reason", models.TextField(default="")),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="head_moves",
                        to="conversations.conversation",
                    ),
                ),
            ],
            options={
                "db_table": "head_moves",
                "constraints": [
                    models.UniqueConstraint(fields=("conversation", "number"), name="head_moves_are_numbered"),
                    models.CheckConstraint(
                        condition=Q(number__gte=1, head_seq__gte=0, head_seq__lt=F("at_seq")),
                        name="head_moves_lead_to_a_message",
                    ),
                ],
            },
        ),
        migrations.AddField("conversation", "moves", models.IntegerField(default=0, db_default=0)),
        migrations.AddField("conversation", "inactive", SeqRangesField(default="{}", db_default="{}")),
        RunSQLFile("conversations/sql/branches.sql"),
        SealRows("head_moves", "conversation_id number at_seq head_seq recorded_at reason"),
    ]

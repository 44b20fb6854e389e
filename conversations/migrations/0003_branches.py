"""Moves of the heads of conversations, and the journal of agent programs (hosts)."""

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
        RunSQLFile("conversations/sql/branches/head_moves.sql"),
        SealRows("head_moves", "conversation_id number at_seq head_seq recorded_at reason"),
        migrations.CreateModel(
            name="JournalEntry",
            fields=[
                ("journal_entry_id", models.BigAutoField(primary_key=True, serialize=False)),
                ("subpath", models.TextField(default="")),
                ("position", models.BigIntegerField()),
                ("uuid", models.TextField(null=True)),
                ("entry", models.TextField(null=True)),
                ("entry_hash", models.BinaryField()),
                ("recorded_at", models.DateTimeField(db_default=Now())),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="journal_entries",
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
            ],
            options={
                "db_table": "journal_entries",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("conversation", "subpath", "position"), name="journal_entries_have_a_place_each"
                    ),
                    models.UniqueConstraint(
                        fields=("conversation", "subpath", "uuid"),
                        condition=Q(uuid__isnull=False),
                        name="journal_entries_are_kept_once",
                    ),
                    models.CheckConstraint(condition=Q(position__gte=1), name="journal_entries_are_numbered_from_one"),
                    models.CheckConstraint(
                        condition=Q(entry__isnull=False) | Q(erased_by__isnull=False),
                        name="journal_entries_hold_something",
                    ),
                ],
            },
        ),
        migrations.AddField("conversation", "journal_size", models.BigIntegerField(default=0, db_default=0)),
        RunSQLFile("conversations/sql/journal/entries.sql"),
        SealRows("journal_entries", "conversation_id subpath position uuid entry_hash recorded_at erased_by_id"),
    ]

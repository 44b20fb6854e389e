"""The audit log, the cold tier, quarantine; and chains that seal metadata and the time of recording."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now

from conversations.content.hashing import metadata_hash
from conversations.content.lossless_values import overlaid
from conversations.run_sql import HERE as SQL
from conversations.run_sql import RunSQLFile

# Loaded anew below, as the files say them now.
DROP_OLD = """
    DROP FUNCTION lcm_append_messages;
    DROP AGGREGATE IF EXISTS lcm_chain(bytea, bytea, timestamptz);
    DROP AGGREGATE IF EXISTS lcm_chain(bytea, bytea, bytea, timestamptz, timestamptz);
    DROP FUNCTION lcm_next_link;
    DROP FUNCTION lcm_refuse_change CASCADE;
    DROP FUNCTION lcm_require_source CASCADE;
    DROP FUNCTION IF EXISTS lcm_keep_message, lcm_keep_part, lcm_keep_summary CASCADE;
    DROP FUNCTION IF EXISTS lcm_is_announced;
"""


# Without it a dump cannot be restored; see search.sql.
FIND_THE_OTHERS = """
    ALTER FUNCTION lcm_tsv_of(text) SET search_path FROM CURRENT;
    ALTER FUNCTION lcm_tsv_of_large(text) SET search_path FROM CURRENT;
"""


def hash_metadata(apps: Any, schema_editor: Any) -> None:
    """For the messages that have any."""
    messages = apps.get_model("conversations", "Message").objects.exclude(metadata={}).only("metadata", "exact")
    for message in messages.iterator(chunk_size=500):
        values = overlaid({"metadata": message.metadata}, message.exact)
        message.metadata_hash = metadata_hash(values["metadata"])
        message.save(update_fields=["metadata_hash"])


def _foreign_key(to: str, related_name: str) -> models.Field[Any, Any]:
    return models.ForeignKey(
        null=True, on_delete=django.db.models.deletion.RESTRICT, related_name=related_name, to=f"conversations.{to}"
    )


MODELS = [
    migrations.CreateModel(
        name="AuditEntry",
        fields=[
            ("audit_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("recorded_at", models.DateTimeField(db_default=models.Func(function="clock_timestamp"))),
            ("actor", models.TextField()),
            ("act", models.TextField()),
            ("target", models.TextField(default="")),
            ("detail", models.JSONField(default=dict)),
            ("workspace", _foreign_key("workspace", "+")),
            ("conversation", _foreign_key("conversation", "+")),
        ],
        options={
            "db_table": "audit_log",
            "verbose_name_plural": "audit entries",
            "indexes": [
                models.Index(fields=["workspace", "audit_id"], name="audit_log_workspace_idx"),
                models.Index(fields=["conversation", "audit_id"], name="audit_log_conversation_idx"),
            ],
            "constraints": [
                models.CheckConstraint(
                    condition=~models.Q(actor="") & ~models.Q(act=""), name="audit_log_names_who_and_what"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="ColdBlock",
        fields=[
            ("cold_block_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("first_seq", models.BigIntegerField()),
            ("last_seq", models.BigIntegerField()),
            ("message_count", models.IntegerField()),
            ("packed", models.BinaryField()),
            ("packed_hash", models.BinaryField()),
            ("bytes_before", models.BigIntegerField()),
            ("created_at", models.DateTimeField(db_default=models.Func(function="clock_timestamp"))),
            (
                "conversation",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.RESTRICT,
                    related_name="cold_blocks",
                    to="conversations.conversation",
                ),
            ),
        ],
        options={
            "db_table": "cold_blocks",
            "indexes": [models.Index(fields=["conversation", "first_seq"], name="cold_blocks_conv_idx")],
            "constraints": [
                models.CheckConstraint(
                    condition=models.Q(first_seq__gte=1, first_seq__lte=models.F("last_seq"), message_count__gte=1),
                    name="cold_blocks_cover_a_range",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="Quarantine",
        fields=[
            ("quarantine_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("target", models.TextField()),
            ("reason", models.TextField()),
            ("created_at", models.DateTimeField(db_default=models.Func(function="clock_timestamp"))),
            ("released_at", models.DateTimeField(null=True)),
            (
                "conversation",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.RESTRICT,
                    related_name="quarantines",
                    to="conversations.conversation",
                ),
            ),
        ],
        options={
            "db_table": "quarantines",
            "indexes": [models.Index(fields=["conversation"], name="quarantines_conv_idx")],
            "constraints": [
                models.UniqueConstraint(
                    fields=["target"],
                    condition=models.Q(released_at__isnull=True),
                    name="quarantines_hold_a_thing_once",
                )
            ],
        },
    ),
    migrations.AddField("workspace", "cold_after_days", models.IntegerField(null=True)),
    migrations.AddConstraint(
        "workspace",
        models.CheckConstraint(condition=models.Q(cold_after_days__gte=1), name="workspaces_wait_at_least_a_day"),
    ),
    migrations.AddField("conversation", "last_used_on", models.DateField(db_default=Now())),
    migrations.AddField("conversation", "quarantined", models.IntegerField(default=0, db_default=0)),
    migrations.AddField("conversation", "cold_messages", models.BigIntegerField(default=0, db_default=0)),
    migrations.AddField("message", "metadata_hash", models.BinaryField(null=True)),
    migrations.AddField("message", "cold_block", _foreign_key("coldblock", "messages")),
    migrations.AddField("message", "erased_by", _foreign_key("auditentry", "+")),
    migrations.AddField("summary", "erased_by", _foreign_key("auditentry", "+")),
    migrations.AddField("largefile", "erased_by", _foreign_key("auditentry", "+")),
]


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0003_writing_summaries"),
    ]

    operations = [
        migrations.RunSQL(DROP_OLD, migrations.RunSQL.noop),
        RunSQLFile(SQL / "immutability.sql"),
        RunSQLFile(SQL / "trust.sql", state_operations=MODELS),
        RunSQLFile(SQL / "append.sql"),
        migrations.RunSQL(FIND_THE_OTHERS, migrations.RunSQL.noop),
        # What was stored before is sealed anew, as what is stored from now on; the trigger that forbids it is off for as long.
        migrations.RunSQL("ALTER TABLE messages DISABLE TRIGGER messages_are_immutable", migrations.RunSQL.noop),
        migrations.RunPython(hash_metadata, migrations.RunPython.noop),
        RunSQLFile(SQL / "sealing_again.sql"),
        migrations.RunSQL("ALTER TABLE messages ENABLE TRIGGER messages_are_immutable", migrations.RunSQL.noop),
    ]

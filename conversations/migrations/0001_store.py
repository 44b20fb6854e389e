"""The store's schema. The SQL is the schema; the state operations tell Django's ORM about it."""

from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import conversations.models.fields
import conversations.types
from conversations.run_sql import RunSQLFile

SQL = Path(__file__).parent.parent / "sql"

MODELS = [
    migrations.CreateModel(
        name="Conversation",
        fields=[
            ("conversation_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("session_id", models.TextField()),
            ("title", models.TextField(null=True)),
            ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ("updated_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ("metadata", models.JSONField(default=dict)),
            ("overrides", models.JSONField(default=dict)),
            ("next_seq", models.BigIntegerField(default=1)),
            ("total_tokens", models.BigIntegerField(default=0)),
            ("active_messages", models.BigIntegerField(default=0)),
            ("active_tokens", models.BigIntegerField(default=0)),
            ("rest_until_seq", models.BigIntegerField(default=0)),
            ("chain_head", models.BinaryField(default=b"")),
        ],
        options={
            "db_table": "conversations",
        },
    ),
    migrations.CreateModel(
        name="Workspace",
        fields=[
            ("workspace_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("name", models.TextField(unique=True)),
            ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
        ],
        options={
            "db_table": "workspaces",
        },
    ),
    migrations.CreateModel(
        name="Message",
        fields=[
            ("message_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("seq", models.BigIntegerField()),
            ("role", conversations.models.fields.EnumField(conversations.types.Role, "message_role")),
            ("content", models.TextField()),
            ("token_count", models.IntegerField()),
            ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            (
                "content_tsv",
                models.GeneratedField(
                    db_persist=True,
                    expression=models.Func("content", function="lcm_tsv"),
                    output_field=django.contrib.postgres.search.SearchVectorField(),
                ),
            ),
            ("recorded_at", models.DateTimeField(db_default=models.Func(function="clock_timestamp"))),
            ("author", models.TextField(null=True)),
            ("idempotency_key", models.TextField(null=True)),
            ("metadata", models.JSONField(default=dict)),
            ("exact", conversations.models.fields.ExactJSONField(null=True)),
            ("token_counter", models.TextField()),
            ("chained_parts", models.IntegerField(default=0)),
            ("content_hash", models.BinaryField()),
            ("entry_hash", models.BinaryField()),
            ("chain_hash", models.BinaryField()),
            (
                "conversation",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="messages",
                    to="conversations.conversation",
                ),
            ),
        ],
        options={
            "db_table": "messages",
        },
    ),
    migrations.CreateModel(
        name="MessagePart",
        fields=[
            ("part_id", models.TextField(primary_key=True, serialize=False)),
            ("session_id", models.TextField()),
            (
                "part_type",
                conversations.models.fields.EnumField(conversations.types.PartType, "message_part_type"),
            ),
            ("ordinal", models.IntegerField()),
            ("text_content", models.TextField(null=True)),
            ("is_ignored", models.BooleanField(null=True)),
            ("is_synthetic", models.BooleanField(null=True)),
            ("tool_call_id", models.TextField(null=True)),
            ("tool_name", models.TextField(null=True)),
            ("tool_status", models.TextField(null=True)),
            ("tool_input", models.JSONField(null=True)),
            ("tool_output", models.TextField(null=True)),
            ("tool_error", models.TextField(null=True)),
            ("tool_title", models.TextField(null=True)),
            ("patch_hash", models.TextField(null=True)),
            (
                "patch_files",
                django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), null=True, size=None),
            ),
            ("file_mime", models.TextField(null=True)),
            ("file_name", models.TextField(null=True)),
            ("file_url", models.TextField(null=True)),
            ("subtask_prompt", models.TextField(null=True)),
            ("subtask_desc", models.TextField(null=True)),
            ("subtask_agent", models.TextField(null=True)),
            ("step_reason", models.TextField(null=True)),
            ("step_cost", models.DecimalField(decimal_places=500, max_digits=1000, null=True)),
            ("step_tokens_in", models.IntegerField(null=True)),
            ("step_tokens_out", models.IntegerField(null=True)),
            ("snapshot_hash", models.TextField(null=True)),
            ("compaction_auto", models.BooleanField(null=True)),
            ("metadata", models.JSONField(null=True)),
            ("exact", conversations.models.fields.ExactJSONField(null=True)),
            ("part_hash", models.BinaryField()),
            (
                "message",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="parts",
                    to="conversations.message",
                ),
            ),
        ],
        options={
            "db_table": "message_parts",
        },
    ),
    migrations.CreateModel(
        name="Summary",
        fields=[
            ("summary_id", models.TextField(primary_key=True, serialize=False)),
            ("kind", conversations.models.fields.EnumField(conversations.types.SummaryKind, "summary_kind")),
            ("content", models.TextField()),
            ("token_count", models.IntegerField()),
            ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            (
                "content_tsv",
                models.GeneratedField(
                    db_persist=True,
                    expression=models.Func("content", function="lcm_tsv"),
                    output_field=django.contrib.postgres.search.SearchVectorField(),
                ),
            ),
            ("file_ids", models.JSONField(default=list)),
            ("depth", models.IntegerField()),
            ("first_seq", models.BigIntegerField()),
            ("last_seq", models.BigIntegerField()),
            ("earliest_at", models.DateTimeField()),
            ("latest_at", models.DateTimeField()),
            ("source_count", models.IntegerField()),
            ("descendant_count", models.IntegerField()),
            ("source_tokens", models.BigIntegerField()),
            (
                "level",
                models.TextField(
                    choices=[
                        ("normal", "normal"),
                        ("aggressive", "aggressive"),
                        ("deterministic", "deterministic"),
                    ]
                ),
            ),
            ("model", models.TextField()),
            ("quality", models.JSONField(default=dict)),
            ("token_counter", models.TextField()),
            ("summary_hash", models.BinaryField()),
            ("run_id", models.TextField()),
            (
                "conversation",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="summaries",
                    to="conversations.conversation",
                ),
            ),
        ],
        options={
            "verbose_name_plural": "summaries",
            "db_table": "summaries",
        },
    ),
    migrations.CreateModel(
        name="ContextItem",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "conversation_id",
                    "ordinal",
                    blank=True,
                    editable=False,
                    primary_key=True,
                    serialize=False,
                ),
            ),
            ("ordinal", models.BigIntegerField()),
            (
                "item_type",
                conversations.models.fields.EnumField(conversations.types.ContextItemType, "context_item_type"),
            ),
            ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ("token_count", models.IntegerField()),
            (
                "conversation",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="context_items",
                    to="conversations.conversation",
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
                    null=True,
                    on_delete=django.db.models.deletion.RESTRICT,
                    related_name="+",
                    to="conversations.summary",
                ),
            ),
        ],
        options={
            "db_table": "context_items",
        },
    ),
    migrations.CreateModel(
        name="SummaryMessage",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "summary_id", "message_id", blank=True, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("ordinal", models.IntegerField()),
            (
                "message",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.RESTRICT,
                    related_name="summary_links",
                    to="conversations.message",
                ),
            ),
            (
                "summary",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="message_links",
                    to="conversations.summary",
                ),
            ),
        ],
        options={
            "db_table": "summary_messages",
        },
    ),
    migrations.CreateModel(
        name="SummaryParent",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "summary_id", "source_id", blank=True, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("ordinal", models.IntegerField()),
            (
                "source",
                models.ForeignKey(
                    db_column="parent_summary_id",
                    on_delete=django.db.models.deletion.RESTRICT,
                    related_name="derived_links",
                    to="conversations.summary",
                ),
            ),
            (
                "summary",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="source_links",
                    to="conversations.summary",
                ),
            ),
        ],
        options={
            "db_table": "summary_parents",
        },
    ),
    migrations.AddField(
        model_name="conversation",
        name="workspace",
        field=models.ForeignKey(
            on_delete=django.db.models.deletion.RESTRICT,
            related_name="conversations",
            to="conversations.workspace",
        ),
    ),
    migrations.CreateModel(
        name="LargeFile",
        fields=[
            ("file_id", models.TextField(primary_key=True, serialize=False)),
            ("file_name", models.TextField(null=True)),
            ("mime_type", models.TextField(null=True)),
            ("byte_size", models.BigIntegerField(null=True)),
            ("storage_uri", models.TextField()),
            ("exploration_summary", models.TextField(null=True)),
            ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ("content_hash", models.BinaryField(null=True)),
            (
                "conversation",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="large_files",
                    to="conversations.conversation",
                ),
            ),
        ],
        options={
            "db_table": "large_files",
            "indexes": [models.Index(fields=["conversation", "created_at"], name="large_files_conv_idx")],
        },
    ),
    migrations.AddIndex(
        model_name="message",
        index=models.Index(fields=["conversation", "seq"], name="messages_conv_seq_idx"),
    ),
    migrations.AddIndex(
        model_name="message",
        index=django.contrib.postgres.indexes.GinIndex(fields=["content_tsv"], name="messages_tsv_gin_idx"),
    ),
    migrations.AddIndex(
        model_name="message",
        index=models.Index(fields=["content_hash"], name="messages_content_hash_idx"),
    ),
    migrations.AddIndex(
        model_name="message",
        index=models.Index(
            condition=models.Q(("role", "system")), fields=["conversation", "seq"], name="messages_system_idx"
        ),
    ),
    migrations.AddConstraint(
        model_name="message",
        constraint=models.UniqueConstraint(fields=("conversation", "seq"), name="messages_conversation_id_seq_key"),
    ),
    migrations.AddConstraint(
        model_name="message",
        constraint=models.UniqueConstraint(
            condition=models.Q(("idempotency_key__isnull", False)),
            fields=("conversation", "idempotency_key"),
            name="messages_take_an_idempotency_key_once",
        ),
    ),
    migrations.AddConstraint(
        model_name="message",
        constraint=models.CheckConstraint(condition=models.Q(("seq__gte", 1)), name="messages_are_numbered_from_one"),
    ),
    migrations.AddConstraint(
        model_name="message",
        constraint=models.CheckConstraint(
            condition=models.Q(("token_count__gte", 0)), name="messages_cost_no_less_than_nothing"
        ),
    ),
    migrations.AddIndex(
        model_name="messagepart",
        index=models.Index(fields=["message"], name="message_parts_message_idx"),
    ),
    migrations.AddIndex(
        model_name="messagepart",
        index=models.Index(fields=["part_type"], name="message_parts_type_idx"),
    ),
    migrations.AddConstraint(
        model_name="messagepart",
        constraint=models.UniqueConstraint(fields=("message", "ordinal"), name="message_parts_message_id_ordinal_key"),
    ),
    migrations.AddIndex(
        model_name="summary",
        index=models.Index(fields=["conversation", "created_at"], name="summaries_conv_created_idx"),
    ),
    migrations.AddIndex(
        model_name="summary",
        index=django.contrib.postgres.indexes.GinIndex(fields=["content_tsv"], name="summaries_tsv_gin_idx"),
    ),
    migrations.AddIndex(
        model_name="summary",
        index=models.Index(fields=["conversation", "first_seq", "last_seq"], name="summaries_conv_range_idx"),
    ),
    migrations.AddConstraint(
        model_name="summary",
        constraint=models.CheckConstraint(
            condition=models.Q(
                models.Q(("depth", 0), ("kind", "leaf")),
                models.Q(models.Q(("kind", "leaf"), _negated=True), models.Q(("depth", 0), _negated=True)),
                _connector="OR",
            ),
            name="summaries_of_messages_are_leaves",
        ),
    ),
    migrations.AddConstraint(
        model_name="summary",
        constraint=models.CheckConstraint(
            condition=models.Q(("first_seq__gte", 1), ("first_seq__lte", models.F("last_seq"))),
            name="summaries_cover_a_range",
        ),
    ),
    migrations.AddConstraint(
        model_name="summary",
        constraint=models.CheckConstraint(
            condition=models.Q(("level__in", ["normal", "aggressive", "deterministic"])),
            name="summaries_know_their_level",
        ),
    ),
    migrations.AddConstraint(
        model_name="contextitem",
        constraint=models.CheckConstraint(
            condition=models.Q(
                models.Q(("item_type", "message"), ("message__isnull", False), ("summary__isnull", True)),
                models.Q(("item_type", "summary"), ("message__isnull", True), ("summary__isnull", False)),
                _connector="OR",
            ),
            name="context_items_check",
        ),
    ),
    migrations.AddConstraint(
        model_name="contextitem",
        constraint=models.UniqueConstraint(
            condition=models.Q(("message__isnull", False)),
            fields=("message",),
            name="context_items_show_a_message_once",
        ),
    ),
    migrations.AddConstraint(
        model_name="contextitem",
        constraint=models.UniqueConstraint(
            condition=models.Q(("summary__isnull", False)),
            fields=("summary",),
            name="context_items_show_a_summary_once",
        ),
    ),
    migrations.AddConstraint(
        model_name="summaryparent",
        constraint=models.CheckConstraint(
            condition=models.Q(("summary", models.F("source")), _negated=True),
            name="summary_parents_are_others",
        ),
    ),
    migrations.AddConstraint(
        model_name="conversation",
        constraint=models.UniqueConstraint(
            fields=("workspace", "session_id"), name="conversations_have_one_session_per_workspace"
        ),
    ),
]


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        RunSQLFile(SQL / "enums.sql"),
        RunSQLFile(SQL / "search.sql"),
        migrations.SeparateDatabaseAndState(
            database_operations=[RunSQLFile(SQL / "tables.sql")], state_operations=MODELS
        ),
        RunSQLFile(SQL / "immutability.sql"),
        RunSQLFile(SQL / "append.sql"),
    ]

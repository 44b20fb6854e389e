"""The tables of the store: SQL files make them, operations describe them."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import migrations, models
from django.db.models import F, Func, Q
from django.db.models.functions import Now

from conversations.models.columns import EnumField, ExactJSONField
from conversations.run_sql import RunSQLFile, SealRows
from conversations.types import ContextItemType, PartType, Role, SummaryKind

MODELS = [
    migrations.CreateModel(
        name="Workspace",
        fields=[
            ("workspace_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("name", models.TextField(unique=True)),
            ("created_at", models.DateTimeField(db_default=Now())),
            ("cold_after_days", models.IntegerField(null=True)),
        ],
        options={
            "db_table": "workspaces",
            "constraints": [
                models.CheckConstraint(condition=Q(cold_after_days__gte=1), name="workspaces_wait_at_least_a_day")
            ],
        },
    ),
    migrations.CreateModel(
        name="Conversation",
        fields=[
            ("conversation_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("session_id", models.TextField()),
            ("title", models.TextField(null=True)),
            ("created_at", models.DateTimeField(db_default=Now())),
            ("updated_at", models.DateTimeField(db_default=Now())),
            ("metadata", models.JSONField(default=dict)),
            ("overrides", models.JSONField(default=dict)),
            ("next_seq", models.BigIntegerField(default=1)),
            ("total_tokens", models.BigIntegerField(default=0)),
            ("active_messages", models.BigIntegerField(default=0)),
            ("active_tokens", models.BigIntegerField(default=0)),
            ("rest_until_seq", models.BigIntegerField(default=0)),
            ("chain_head", models.BinaryField(default=b"")),
            ("last_used_on", models.DateField(db_default=Now())),
            ("quarantined", models.IntegerField(db_default=0, default=0)),
            ("cold_messages", models.BigIntegerField(db_default=0, default=0)),
            ("workspace", models.ForeignKey("conversations.workspace", models.RESTRICT, related_name="conversations")),
        ],
        options={
            "db_table": "conversations",
            "constraints": [
                models.UniqueConstraint(
                    fields=("workspace", "session_id"), name="conversations_have_one_session_per_workspace"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="AuditHead",
        fields=[
            ("head_id", models.SmallIntegerField(db_default=1, default=1, primary_key=True, serialize=False)),
            ("number", models.BigIntegerField(db_default=0)),
            ("chain_hash", models.BinaryField(db_default=b"")),
        ],
        options={
            "db_table": "audit_head",
            "constraints": [models.CheckConstraint(condition=Q(head_id=1), name="audit_head_is_one_row")],
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
            ("created_at", models.DateTimeField(db_default=Func(function="clock_timestamp"))),
            (
                "conversation",
                models.ForeignKey("conversations.conversation", models.RESTRICT, related_name="cold_blocks"),
            ),
        ],
        options={
            "db_table": "cold_blocks",
            "indexes": [models.Index(fields=["conversation", "first_seq"], name="cold_blocks_conv_idx")],
            "constraints": [
                models.CheckConstraint(
                    condition=Q(first_seq__gte=1, first_seq__lte=F("last_seq"), message_count__gte=1),
                    name="cold_blocks_cover_a_range",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="AuditEntry",
        fields=[
            ("audit_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("recorded_at", models.DateTimeField(db_default=Func(function="clock_timestamp"))),
            ("actor", models.TextField()),
            ("act", models.TextField()),
            ("target", models.TextField(default="")),
            ("detail", models.JSONField(default=dict)),
            (
                "conversation",
                models.ForeignKey("conversations.conversation", models.RESTRICT, null=True, related_name="+"),
            ),
            ("workspace", models.ForeignKey("conversations.workspace", models.RESTRICT, null=True, related_name="+")),
        ],
        options={
            "verbose_name_plural": "audit entries",
            "db_table": "audit_log",
            "indexes": [
                models.Index(fields=["workspace", "audit_id"], name="audit_log_workspace_idx"),
                models.Index(fields=["conversation", "audit_id"], name="audit_log_conversation_idx"),
                models.Index(fields=["target", "audit_id"], name="audit_log_target_idx"),
            ],
            "constraints": [
                models.CheckConstraint(
                    condition=Q(Q(actor="", _negated=True), Q(act="", _negated=True)),
                    name="audit_log_names_who_and_what",
                )
            ],
        },
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
            ("created_at", models.DateTimeField(db_default=Now())),
            ("content_hash", models.BinaryField(null=True)),
            (
                "conversation",
                models.ForeignKey("conversations.conversation", models.CASCADE, related_name="large_files"),
            ),
            ("erased_by", models.ForeignKey("conversations.auditentry", models.RESTRICT, null=True, related_name="+")),
        ],
        options={
            "db_table": "large_files",
            "indexes": [models.Index(fields=["conversation", "created_at"], name="large_files_conv_idx")],
        },
    ),
    migrations.CreateModel(
        name="Message",
        fields=[
            ("message_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("seq", models.BigIntegerField()),
            ("role", EnumField(Role, "message_role")),
            ("content", models.TextField()),
            ("token_count", models.IntegerField()),
            ("created_at", models.DateTimeField(db_default=Now())),
            (
                "content_tsv",
                models.GeneratedField(
                    db_persist=True,
                    expression=Func("content", "conversation", "seq", function="lcm_tsv_at"),
                    output_field=SearchVectorField(),
                ),
            ),
            ("recorded_at", models.DateTimeField(db_default=Func(function="clock_timestamp"))),
            ("author", models.TextField(null=True)),
            ("idempotency_key", models.TextField(null=True)),
            ("metadata", models.JSONField(default=dict)),
            ("exact", ExactJSONField(null=True)),
            ("token_counter", models.TextField()),
            ("chained_parts", models.IntegerField(default=0)),
            ("content_hash", models.BinaryField()),
            ("entry_hash", models.BinaryField()),
            ("metadata_hash", models.BinaryField(null=True)),
            ("record_hash", models.BinaryField(null=True)),
            ("chain_hash", models.BinaryField()),
            (
                "cold_block",
                models.ForeignKey("conversations.coldblock", models.RESTRICT, null=True, related_name="messages"),
            ),
            ("conversation", models.ForeignKey("conversations.conversation", models.CASCADE, related_name="messages")),
            ("erased_by", models.ForeignKey("conversations.auditentry", models.RESTRICT, null=True, related_name="+")),
        ],
        options={
            "db_table": "messages",
            "indexes": [
                models.Index(fields=["conversation", "seq"], name="messages_conv_seq_idx"),
                GinIndex(fields=["content_tsv"], name="messages_tsv_gin_idx"),
                models.Index(fields=["content_hash"], name="messages_content_hash_idx"),
                models.Index(condition=Q(role="system"), fields=["conversation", "seq"], name="messages_system_idx"),
                models.Index(condition=Q(erased_by__isnull=False), fields=["conversation"], name="messages_erased_idx"),
            ],
            "constraints": [
                models.UniqueConstraint(fields=("conversation", "seq"), name="messages_conversation_id_seq_key"),
                models.UniqueConstraint(
                    condition=Q(idempotency_key__isnull=False),
                    fields=("conversation", "idempotency_key"),
                    name="messages_take_an_idempotency_key_once",
                ),
                models.CheckConstraint(condition=Q(seq__gte=1), name="messages_are_numbered_from_one"),
                models.CheckConstraint(condition=Q(token_count__gte=0), name="messages_cost_no_less_than_nothing"),
            ],
        },
    ),
    migrations.CreateModel(
        name="FileReference",
        fields=[
            ("reference_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("part_ordinal", models.IntegerField(null=True)),
            ("field", models.TextField()),
            ("start_at", models.IntegerField(null=True)),
            ("length", models.IntegerField(null=True)),
            ("file", models.ForeignKey("conversations.largefile", models.RESTRICT, related_name="references")),
            ("message", models.ForeignKey("conversations.message", models.CASCADE, related_name="file_references")),
        ],
        options={
            "db_table": "file_references",
            "indexes": [
                models.Index(fields=["message"], name="file_references_message_idx"),
                models.Index(fields=["file"], name="file_references_file_idx"),
            ],
            "constraints": [
                models.CheckConstraint(
                    condition=Q(
                        Q(length__isnull=True, start_at__isnull=True),
                        Q(length__gt=0, length__isnull=False, start_at__gte=0, start_at__isnull=False),
                        _connector="OR",
                    ),
                    name="file_references_stand_somewhere",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="MessagePart",
        fields=[
            ("part_id", models.TextField(primary_key=True, serialize=False)),
            ("session_id", models.TextField()),
            ("part_type", EnumField(PartType, "message_part_type")),
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
            ("patch_files", ArrayField(base_field=models.TextField(), null=True, size=None)),
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
            ("exact", ExactJSONField(null=True)),
            ("part_hash", models.BinaryField()),
            ("message", models.ForeignKey("conversations.message", models.CASCADE, related_name="parts")),
        ],
        options={
            "db_table": "message_parts",
            "indexes": [
                models.Index(fields=["message"], name="message_parts_message_idx"),
                models.Index(fields=["part_type"], name="message_parts_type_idx"),
                models.Index(
                    condition=Q(tool_name__isnull=False), fields=["tool_name", "message"], name="message_parts_tool_idx"
                ),
            ],
            "constraints": [
                models.UniqueConstraint(fields=("message", "ordinal"), name="message_parts_message_id_ordinal_key")
            ],
        },
    ),
    migrations.CreateModel(
        name="Quarantine",
        fields=[
            ("quarantine_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("target", models.TextField()),
            ("reason", models.TextField()),
            ("created_at", models.DateTimeField(db_default=Func(function="clock_timestamp"))),
            ("released_at", models.DateTimeField(null=True)),
            (
                "conversation",
                models.ForeignKey("conversations.conversation", models.RESTRICT, related_name="quarantines"),
            ),
        ],
        options={
            "db_table": "quarantines",
            "indexes": [models.Index(fields=["conversation"], name="quarantines_conv_idx")],
            "constraints": [
                models.UniqueConstraint(
                    condition=Q(released_at__isnull=True), fields=("target",), name="quarantines_hold_a_thing_once"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="Summary",
        fields=[
            ("summary_id", models.TextField(primary_key=True, serialize=False)),
            ("kind", EnumField(SummaryKind, "summary_kind")),
            ("content", models.TextField()),
            ("token_count", models.IntegerField()),
            ("created_at", models.DateTimeField(db_default=Now())),
            (
                "content_tsv",
                models.GeneratedField(
                    db_persist=True,
                    expression=Func("content", "conversation", "last_seq", function="lcm_tsv_at"),
                    output_field=SearchVectorField(),
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
                    choices=[("normal", "normal"), ("aggressive", "aggressive"), ("deterministic", "deterministic")]
                ),
            ),
            ("model", models.TextField()),
            ("quality", models.JSONField(default=dict)),
            ("token_counter", models.TextField()),
            ("summary_hash", models.BinaryField()),
            ("run_id", models.TextField()),
            ("retention", models.FloatField(null=True)),
            ("is_degraded", models.BooleanField(db_default=False, default=False)),
            ("prompt_hash", models.TextField(db_default="", default="")),
            ("tokens_in", models.IntegerField(db_default=0, default=0)),
            ("tokens_out", models.IntegerField(db_default=0, default=0)),
            ("duration_ms", models.IntegerField(db_default=0, default=0)),
            ("conversation", models.ForeignKey("conversations.conversation", models.CASCADE, related_name="summaries")),
            ("erased_by", models.ForeignKey("conversations.auditentry", models.RESTRICT, null=True, related_name="+")),
            (
                "supersedes",
                models.OneToOneField("conversations.summary", models.RESTRICT, null=True, related_name="superseded_by"),
            ),
        ],
        options={
            "verbose_name_plural": "summaries",
            "db_table": "summaries",
            "indexes": [
                models.Index(fields=["conversation", "created_at"], name="summaries_conv_created_idx"),
                GinIndex(fields=["content_tsv"], name="summaries_tsv_gin_idx"),
                models.Index(fields=["conversation", "first_seq", "last_seq"], name="summaries_conv_range_idx"),
                models.Index(fields=["conversation", "last_seq"], name="summaries_conv_last_idx"),
                models.Index(condition=Q(is_degraded=True), fields=["conversation"], name="summaries_degraded_idx"),
            ],
            "constraints": [
                models.CheckConstraint(
                    condition=Q(
                        Q(depth=0, kind="leaf"),
                        Q(Q(kind="leaf", _negated=True), Q(depth=0, _negated=True)),
                        _connector="OR",
                    ),
                    name="summaries_of_messages_are_leaves",
                ),
                models.CheckConstraint(
                    condition=Q(first_seq__gte=1, first_seq__lte=F("last_seq")), name="summaries_cover_a_range"
                ),
                models.CheckConstraint(
                    condition=Q(level__in=["normal", "aggressive", "deterministic"]), name="summaries_know_their_level"
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="ContextItem",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "conversation_id", "ordinal", blank=True, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("ordinal", models.BigIntegerField()),
            ("item_type", EnumField(ContextItemType, "context_item_type")),
            ("created_at", models.DateTimeField(db_default=Now())),
            ("token_count", models.IntegerField()),
            (
                "conversation",
                models.ForeignKey("conversations.conversation", models.CASCADE, related_name="context_items"),
            ),
            ("message", models.ForeignKey("conversations.message", models.RESTRICT, null=True, related_name="+")),
            ("summary", models.ForeignKey("conversations.summary", models.RESTRICT, null=True, related_name="+")),
        ],
        options={
            "db_table": "context_items",
            "constraints": [
                models.CheckConstraint(
                    condition=Q(
                        Q(item_type="message", message__isnull=False, summary__isnull=True),
                        Q(item_type="summary", message__isnull=True, summary__isnull=False),
                        _connector="OR",
                    ),
                    name="context_items_check",
                ),
                models.UniqueConstraint(
                    condition=Q(message__isnull=False), fields=("message",), name="context_items_show_a_message_once"
                ),
                models.UniqueConstraint(
                    condition=Q(summary__isnull=False), fields=("summary",), name="context_items_show_a_summary_once"
                ),
            ],
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
            ("message", models.ForeignKey("conversations.message", models.RESTRICT, related_name="summary_links")),
            ("summary", models.ForeignKey("conversations.summary", models.CASCADE, related_name="message_links")),
        ],
        options={"db_table": "summary_messages"},
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
                    "conversations.summary",
                    models.RESTRICT,
                    db_column="parent_summary_id",
                    related_name="derived_links",
                ),
            ),
            ("summary", models.ForeignKey("conversations.summary", models.CASCADE, related_name="source_links")),
        ],
        options={
            "db_table": "summary_parents",
            "constraints": [
                models.CheckConstraint(
                    condition=Q(summary=F("source"), _negated=True), name="summary_parents_are_others"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="Upload",
        fields=[
            ("upload_id", models.TextField(primary_key=True, serialize=False)),
            ("file_name", models.TextField(null=True)),
            ("mime_type", models.TextField(null=True)),
            ("byte_size", models.BigIntegerField()),
            ("chunk_bytes", models.IntegerField()),
            ("content_hash", models.BinaryField(null=True)),
            ("created_at", models.DateTimeField(db_default=Func(function="clock_timestamp"))),
            ("touched_at", models.DateTimeField(db_default=Func(function="clock_timestamp"))),
            ("conversation", models.ForeignKey("conversations.conversation", models.CASCADE, related_name="uploads")),
            ("file", models.ForeignKey("conversations.largefile", models.CASCADE, null=True, related_name="+")),
        ],
        options={
            "db_table": "uploads",
            "indexes": [
                models.Index(fields=["conversation"], name="uploads_conversation_idx"),
                models.Index(fields=["touched_at"], name="uploads_touched_idx"),
            ],
            "constraints": [
                models.CheckConstraint(condition=Q(byte_size__gte=0, chunk_bytes__gt=0), name="uploads_have_a_size")
            ],
        },
    ),
    migrations.CreateModel(
        name="UploadChunk",
        fields=[
            ("upload_chunk_id", models.BigAutoField(primary_key=True, serialize=False)),
            ("number", models.IntegerField()),
            ("content_hash", models.BinaryField()),
            ("upload", models.ForeignKey("conversations.upload", models.CASCADE, related_name="chunks")),
        ],
        options={
            "db_table": "upload_chunks",
            "constraints": [
                models.UniqueConstraint(fields=("upload", "number"), name="upload_chunks_are_kept_once"),
                models.CheckConstraint(condition=Q(number__gte=0), name="upload_chunks_are_numbered_from_zero"),
            ],
        },
    ),
    migrations.CreateModel(
        name="AuditLink",
        fields=[
            ("number", models.BigIntegerField(primary_key=True, serialize=False)),
            ("chain_hash", models.BinaryField()),
            (
                "entry",
                models.OneToOneField(
                    "conversations.auditentry", models.RESTRICT, db_column="audit_id", related_name="link"
                ),
            ),
        ],
        options={
            "db_table": "audit_chain",
            "constraints": [models.CheckConstraint(condition=Q(number__gte=1), name="audit_chain_counts_from_one")],
        },
    ),
]


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        RunSQLFile("conversations/sql/search.sql"),
        RunSQLFile("conversations/sql/tables.sql", state_operations=MODELS),
        RunSQLFile("conversations/sql/immutability.sql"),
        RunSQLFile("conversations/sql/audit_chain.sql"),
        RunSQLFile("conversations/sql/append.sql"),
        RunSQLFile("conversations/sql/summaries.sql"),
        RunSQLFile("conversations/sql/row_seals.sql"),
        SealRows("workspaces", "workspace_id name created_at cold_after_days"),
        SealRows("conversations", "conversation_id workspace_id session_id title created_at metadata overrides"),
        SealRows(
            "summaries",
            "summary_id conversation_id kind token_count token_counter created_at file_ids depth first_seq last_seq"
            " earliest_at latest_at source_count descendant_count source_tokens level model quality summary_hash run_id"
            " retention is_degraded supersedes_id prompt_hash tokens_in tokens_out duration_ms erased_by_id",
        ),
        SealRows(
            "large_files",
            "file_id conversation_id file_name mime_type byte_size storage_uri exploration_summary created_at"
            " content_hash erased_by_id",
        ),
        SealRows(
            "cold_blocks",
            "cold_block_id conversation_id first_seq last_seq message_count packed_hash bytes_before created_at",
        ),
        SealRows("quarantines", "quarantine_id conversation_id target reason created_at released_at"),
    ]

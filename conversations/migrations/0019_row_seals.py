"""Rows that record facts are sealed: a change past the triggers shows in a check."""

from django.db import migrations

from conversations.run_sql import HERE as SQL
from conversations.run_sql import RunSQLFile, SealRows


class Migration(migrations.Migration):
    dependencies = [("conversations", "0018_sealed_records")]

    operations = [
        RunSQLFile(SQL / "row_seals.sql"),
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

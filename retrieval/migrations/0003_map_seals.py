"""Terms of map runs: constraints, triggers against changes, and seals of rows."""

from django.db import migrations, models

import conversations.models.columns
from conversations.run_sql import RunSQLFile, SealRows

NOT_BLANK = r"[^ \t\r\n]"


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0002_map")]

    operations = [
        migrations.AlterField(
            model_name="maprun", name="output_schema", field=conversations.models.columns.JSONTextField()
        ),
        migrations.RemoveConstraint(model_name="maprun", name="map_runs_delegate_only_with_retention"),
        migrations.AddConstraint(
            model_name="maprun",
            constraint=models.CheckConstraint(
                condition=~models.Q(kind="agentic") | models.Q(retain__regex=NOT_BLANK),
                name="map_runs_delegate_only_with_retention",
            ),
        ),
        migrations.AddConstraint(
            model_name="maprun",
            constraint=models.CheckConstraint(
                condition=~models.Q(kind="agentic")
                | models.Q(grant_id__isnull=True)
                | models.Q(delegated_scope__regex=NOT_BLANK, kept_work__regex=NOT_BLANK),
                name="map_runs_reduce_the_scope_of_a_grant",
            ),
        ),
        RunSQLFile("retrieval/sql/map/immutability.sql"),
        SealRows(
            "map_runs",
            "run_id workspace_id conversation_id kind state pause_reason input_file_id output_file_id failures_file_id"
            " prompt output_schema model concurrency max_attempts temperature timeout_s budget_tokens spent_in spent_out"
            " retain delegated_scope kept_work grant_id read_only parent_run_id idempotency_key total prompt_hash"
            " schema_hash input_hash created_at started_at finished_at last_claim_at",
        ),
        SealRows(
            "map_items",
            "item_id run_id position input_hash state run_after leased_until started_at finished_at fence attempts"
            " refused_answers faults last_error error_kind validation_errors output_hash worker tokens_in tokens_out",
        ),
        SealRows("map_events", "event_id workspace_id run_id seq"),
    ]

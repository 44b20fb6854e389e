"""Runs, plans and boundaries are sealed."""

from django.db import migrations

from conversations.run_sql import SealRows


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0019_row_seals"),
        ("compaction", "0005_jobs_know_their_request"),
    ]

    operations = [
        SealRows(
            "compaction_runs",
            "run_id conversation_id job_id reason outcome started_at finished_at tokens_before tokens_after"
            " leaf_summaries condensed_summaries redone_summaries details",
        ),
        SealRows(
            "compaction_plans",
            "plan_id conversation_id created_at last_seq tokens_before tokens_expected context_hash summarizer policy"
            " steps figures requested_at refusal executed_at run_id",
        ),
        SealRows("compaction_boundaries", "boundary_id conversation_id host_reference last_seq recorded_at metadata"),
    ]

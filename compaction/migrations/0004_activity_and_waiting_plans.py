"""Runs and failed jobs are found by when they were, and a plan waits in its own row for the worker that carries it out."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("compaction", "0003_redo_as_a_person_wishes")]

    operations = [
        migrations.AddIndex(
            "compactionrun", models.Index(fields=["-started_at", "-run_id"], name="compaction_runs_started_idx")
        ),
        migrations.AddIndex(
            "compactionjob",
            models.Index(fields=["finished_at"], condition=Q(state="failed"), name="compaction_jobs_failed_idx"),
        ),
        migrations.AddField("compactionplan", "requested_at", models.DateTimeField(null=True)),
        migrations.AddField("compactionplan", "refusal", models.TextField(default="", db_default="")),
        migrations.AddIndex(
            "compactionplan",
            models.Index(
                fields=["requested_at"],
                condition=Q(requested_at__isnull=False, executed_at__isnull=True, refusal=""),
                name="compaction_plans_waiting_idx",
            ),
        ),
    ]

"""One more reason for a job: a redo that a person wants, of what was rejected, too. The database keeps it as text."""

from django.db import migrations, models

REASONS = [
    ("threshold", "threshold"),
    ("manual", "manual"),
    ("maintenance", "maintenance"),
    ("redo", "redo"),
    ("redo_all", "redo_all"),
]


class Migration(migrations.Migration):
    dependencies = [("compaction", "0002_models_plans_and_boundaries")]

    operations = [
        migrations.AlterField("compactionjob", "reason", models.TextField(choices=REASONS)),
        migrations.AlterField("compactionrun", "reason", models.TextField(choices=REASONS)),
    ]

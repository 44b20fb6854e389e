"""Which request a job comes from, so that the log lines of the worker carry its id."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("compaction", "0004_activity_and_waiting_plans")]

    operations = [
        migrations.AddField("compactionjob", "request_id", models.TextField(default="", db_default="")),
    ]

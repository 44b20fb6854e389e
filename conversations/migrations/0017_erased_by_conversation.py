"""What was erased is found without looking at what was not. Most messages are in no such index, and cost nothing."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0016_summaries_by_place")]

    operations = [
        migrations.AddIndex(
            "message",
            models.Index(
                fields=["conversation"], condition=models.Q(erased_by__isnull=False), name="messages_erased_idx"
            ),
        ),
    ]

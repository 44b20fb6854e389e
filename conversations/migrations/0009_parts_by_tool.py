"""Who calls a tool is found by its name. Most parts call none, and cost nothing."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0008_summaries_by_index")]

    operations = [
        migrations.AddIndex(
            "messagepart",
            models.Index(
                fields=["tool_name", "message"],
                condition=models.Q(tool_name__isnull=False),
                name="message_parts_tool_idx",
            ),
        ),
    ]

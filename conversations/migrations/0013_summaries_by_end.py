"""Summaries are found by where they end, as messages are by their place: the newest with a word, from the newest on."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0012_append_batch")]

    operations = [
        migrations.AddIndex(
            "summary", models.Index(fields=["conversation", "last_seq"], name="summaries_conv_last_idx")
        ),
    ]

"""The index for words leads to the summaries of what is newest in a conversation, as it does to its messages.

Every summary is written once more; messages, of which there are a hundred times as many, are not.
"""

from django.contrib.postgres.search import SearchVectorField
from django.db import migrations, models

from conversations.run_sql import HERE as SQL
from conversations.run_sql import RunSQLFile

_COLUMN = models.GeneratedField(
    expression=models.Func("content", "conversation", "last_seq", function="lcm_tsv_at"),
    output_field=SearchVectorField(),
    db_persist=True,
)


class Migration(migrations.Migration):
    dependencies = [("conversations", "0015_rows_in_one_piece")]

    operations = [
        RunSQLFile(
            SQL / "summaries_by_place.sql",
            state_operations=[
                migrations.RemoveField("summary", "content_tsv"),
                migrations.AddField("summary", "content_tsv", _COLUMN),
            ],
        ),
    ]

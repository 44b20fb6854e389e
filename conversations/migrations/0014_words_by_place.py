"""The index for words leads to the texts of one conversation, or to its newest, and not to all that hold them.

Every message and summary is written once more, which takes about as long as to append them in batches.
"""

from django.contrib.postgres.search import SearchVectorField
from django.db import migrations, models

from conversations.run_sql import HERE as SQL
from conversations.run_sql import RunSQLFile


def _made_anew(model: str, *place: object) -> list[migrations.operations.base.Operation]:
    column = models.GeneratedField(
        expression=models.Func("content", "conversation", *place, function="lcm_tsv_at"),
        output_field=SearchVectorField(),
        db_persist=True,
    )
    return [migrations.RemoveField(model, "content_tsv"), migrations.AddField(model, "content_tsv", column)]


class Migration(migrations.Migration):
    dependencies = [("conversations", "0013_summaries_by_end")]

    operations = [
        RunSQLFile(
            SQL / "search_by_place.sql",
            state_operations=[*_made_anew("message", "seq"), *_made_anew("summary", models.Value(None))],
        ),
    ]

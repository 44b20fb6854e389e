"""The part that most messages have goes in by values of its own, and not as a record of all columns."""

from django.db import migrations

from conversations.run_sql import HERE as SQL
from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("conversations", "0010_summaries_planned_once")]

    operations = [RunSQLFile(SQL / "append_one_part.sql")]

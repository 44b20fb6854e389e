"""The whole row of a message is sealed in the chain, and the rows of files are immutable.

Rows from before have no record_hash, and their links stay valid as they are.
"""

from django.db import migrations, models

from conversations.run_sql import HERE as SQL
from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("conversations", "0017_erased_by_conversation")]

    operations = [
        RunSQLFile(
            SQL / "record_seals.sql",
            state_operations=[migrations.AddField("message", "record_hash", models.BinaryField(null=True))],
        ),
        RunSQLFile(SQL / "append_records.sql"),
    ]

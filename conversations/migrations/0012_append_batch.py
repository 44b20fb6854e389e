"""The contents of a batch go in as a list of their own, and not inside JSON; a part that repeats its message's says so."""

from django.db import migrations

from conversations.run_sql import HERE as SQL
from conversations.run_sql import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("conversations", "0011_append_one_part")]

    operations = [RunSQLFile(SQL / "append_batch.sql")]
